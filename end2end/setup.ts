import type { FullConfig } from "@playwright/test";
import { freePort, start, type Running } from "./server.ts";

/** What a worker is told of its server. */
export interface Served {
  url: string;
  key: string;
  page: string;
  log: string;
  /** The port where the server expects a name server. */
  resolver: number;
}

/** A server with the demo for each worker: files that run at once share nothing. The returned function stops them. */
export default async function setup(config: FullConfig): Promise<() => Promise<void>> {
  const running: Running[] = [];
  const stop = async (): Promise<void> => void (await Promise.all(running.map((one) => one.stop())));
  const begin = async (): Promise<Served> => {
    // Receivers and storages of the journeys listen on an address of this machine, which servers refuse to ask by themselves.
    const resolver = await freePort();
    const settings = { LOUPE_OUTBOUND__ALLOW: '["127.0.0.2"]', LOUPE_APPS__RESOLVER: `127.0.0.1:${resolver}` };
    const one = await start({ settings });
    running.push(one);
    return { url: one.url, key: one.key, page: one.page, log: one.log, resolver };
  };
  const begun = await Promise.allSettled(Array.from({ length: config.workers }, begin));
  const failed = begun.find((one) => one.status === "rejected");
  if (failed) {
    await stop();
    throw failed.reason;
  }
  process.env.LOUPE_JOURNEY_SERVERS = JSON.stringify(begun.map((one) => (one.status === "fulfilled" ? one.value : undefined)));
  return stop;
}
