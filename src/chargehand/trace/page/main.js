// The address of the page -> the list of runs or one run.
import { showRun } from "./run.js";
import { showRuns } from "./runs.js";
import { isLive } from "./source.js";

const main = document.querySelector("main");
const run = location.pathname.match(/\/runs\/([^/]+)\/?$/)?.[1];

(!isLive || run ? showRun(main, decodeURIComponent(run ?? "")) : showRuns(main)).catch((error) => {
  const words = document.createElement("p");
  words.className = "alert";
  words.textContent = `The page could not be shown: ${error.message}`;
  main.replaceChildren(words);
});
