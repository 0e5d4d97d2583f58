export const STATES = ["open", "closed"];
