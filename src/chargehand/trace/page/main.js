// The address of the page -> the list of runs or one run.
import { fill, h, withCode } from "./dom.js";
import { brandLine, showRun } from "./run.js";
import { showRuns } from "./runs.js";
import { homeAddress, isLive } from "./source.js";

const main = document.querySelector("main");
const run = location.pathname.match(/\/runs\/([^/]+)\/?$/)?.[1];

(!isLive || run ? showRun(main, decodeURIComponent(run ?? "")) : showRuns(main)).catch((error) => {
  fill(main, brandLine(), h("h1", {}, "The page could not be shown"), h("p", { class: "alert" }, withCode(error.message)),
    isLive ? h("p", {}, h("a", { href: homeAddress }, "All runs")) : null);
});
