export { Client, type Options, type Status, connect } from "./client";
export { Refused } from "./errors";
