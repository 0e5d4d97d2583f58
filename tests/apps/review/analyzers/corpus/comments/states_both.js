export const STATES = ["open", "void"];
