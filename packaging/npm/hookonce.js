#!/usr/bin/env node
// Runs the program that npm installed for this platform: one of the optional dependencies. Nothing is fetched here.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const name = `@hookonce/${process.platform}-${process.arch}`;

function program() {
  try {
    return require.resolve(`${name}/bin/hookonce${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    console.error(
      `hookonce: the package ${name} is not installed. Either there is none for this platform, or npm was told to leave ` +
        "optional dependencies out (--omit=optional, --no-optional): install without that.",
    );
    process.exit(1);
  }
}

const path = program();
const args = process.argv.slice(2);
if (typeof process.execve === "function" && process.platform !== "win32") {
  process.execve(path, [path, ...args]); // this process becomes the program
}
const child = spawn(path, args, { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (err) => {
  console.error(`hookonce: ${path} cannot be started: ${err.message}`);
  process.exit(1);
});
child.on("exit", (status, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : status));
