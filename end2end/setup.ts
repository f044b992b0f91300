import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
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
  const running: (Running | undefined)[] = [];
  const serving: (Served | undefined)[] = [];
  const begin = async (slot: number): Promise<Served> => {
    // Receivers and storages of the journeys listen on an address of this machine, which servers refuse to ask by themselves.
    const resolver = await freePort();
    const settings = { LOUPE_OUTBOUND__ALLOW: '["127.0.0.2"]', LOUPE_APPS__RESOLVER: `127.0.0.1:${resolver}` };
    const one = await start({ settings });
    running[slot] = one;
    const served = { url: one.url, key: one.key, page: one.page, log: one.log, resolver };
    serving[slot] = served;
    // Workers that are begun from now on are told of it.
    process.env.LOUPE_JOURNEY_SERVERS = JSON.stringify(serving);
    return served;
  };
  // A second try begins where the first one did: what that left behind goes with its server (help.ts asks for this).
  const another = createServer((request, response) => {
    const slot = Number(request.url?.slice(1));
    const began = async (): Promise<Served> => {
      await running[slot]?.stop();
      running[slot] = undefined;
      return begin(slot);
    };
    began().then(
      (served) => response.end(JSON.stringify(served)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  const stop = async (): Promise<void> => {
    another.close();
    another.closeAllConnections();
    await Promise.all(running.map((one) => one?.stop()));
  };
  try {
    another.listen(0, "127.0.0.1");
    await once(another, "listening");
    process.env.LOUPE_JOURNEY_ANOTHER = `http://127.0.0.1:${(another.address() as AddressInfo).port}`;
    const begun = await Promise.allSettled(Array.from({ length: config.workers }, (_, slot) => begin(slot)));
    const failed = begun.find((one) => one.status === "rejected");
    if (failed) throw failed.reason;
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
