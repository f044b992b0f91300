import { spawn, type ChildProcess } from "node:child_process";
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

/** A server of its own: the built binary, a free port, a data folder that is thrown away. */
export interface Running {
  url: string;
  key: string;
  page: string;
  /** The file with all that it said. */
  log: string;
  stop(): Promise<void>;
}

function binary(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const target = process.env.CARGO_TARGET_DIR ?? join(cache, "loupe/target");
  return process.env.LOUPE_BINARY ?? join(target, "release/loupe");
}

/** A port that nobody listens on, below those that connections of this machine take for themselves. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** Waits for the printed key and for `/readyz`. */
async function ready(child: ChildProcess, url: string): Promise<string> {
  let said = "";
  let key = "";
  child.stdout?.on("data", (text: Buffer) => {
    said += text.toString();
    key = /loupe_sk_[A-Za-z0-9]+/.exec(said)?.[0] ?? key;
  });
  child.stderr?.on("data", (text: Buffer) => (said += text.toString()));
  for (let tries = 0; tries < 1800; tries += 1) {
    if (child.exitCode !== null) break;
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    if (answer?.ok && key) return key;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  child.kill("SIGKILL");
  throw new Error(`the server did not start:\n${said.slice(-4000)}`);
}

/** How a server is started. */
export interface Wanted {
  /** Whether `loupe demo` runs against it; without it `page` is empty. */
  demo?: boolean;
  /** Settings besides those that every server of the tests has. */
  settings?: Record<string, string>;
}

/** Runs `loupe demo` against a server, and answers the address of the page that it makes. */
async function load(url: string, key: string, folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(binary(), ["demo", "--url", url, "--key", key], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"], timeout: 10 * 60_000 });
  let said = "";
  for (const from of [child.stdout, child.stderr]) from.on("data", (text: Buffer) => (said += text.toString()));
  const status = await new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  const page = /http:\/\/\S+\/r\/[A-Za-z0-9_-]+/.exec(said)?.[0];
  if (status !== 0 || !page) throw new Error(`loupe demo failed (${status}):\n${said.slice(-4000)}`);
  return page;
}

/** Starts the server and, unless told otherwise, runs `loupe demo` against it. */
export async function start({ demo: wanted = true, settings = {} }: Wanted = {}): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), "loupe-journey-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  // The server refuses settings that it does not know, so those of the tests stay here.
  const outside = Object.entries(process.env).filter(([name]) => !name.startsWith("LOUPE_"));
  const environment: NodeJS.ProcessEnv = {
    ...Object.fromEntries(outside),
    LOUPE_DATA: join(folder, "data"),
    LOUPE_LISTEN: `127.0.0.1:${port}`,
    LOUPE_MODELS__CACHE: process.env.LOUPE_MODEL_CACHE ?? join(homedir(), ".cache/loupe/models"),
    LOUPE_JOBS__RESUBMIT_SECONDS: "0",
    ...settings,
  };
  const child = spawn(binary(), ["serve"], { cwd: folder, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  const log = join(folder, "log");
  const kept = createWriteStream(log);
  child.stdout?.pipe(kept, { end: false });
  child.stderr?.pipe(kept, { end: false });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), 30_000);
      await ended;
      clearTimeout(late);
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const key = await ready(child, url);
    const page = wanted ? await load(url, key, folder, environment) : "";
    return { url, key, page, log, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
