export { Client, type Options, type Status, connect, recover } from "./client";
export { Refused } from "./errors";
