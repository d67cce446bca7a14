export * from "./internals";
