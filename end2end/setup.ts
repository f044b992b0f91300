import { freePort, start } from "./server.ts";

/** One server and one demo for all journeys; the returned function stops it. */
export default async function setup(): Promise<() => Promise<void>> {
  // Receivers and storages of the journeys listen on an address of this machine, which servers refuse to ask by themselves.
  const resolver = await freePort();
  const settings = { LOUPE_OUTBOUND__ALLOW: '["127.0.0.2"]', LOUPE_APPS__RESOLVER: `127.0.0.1:${resolver}` };
  const running = await start({ settings });
  process.env.LOUPE_JOURNEY_RESOLVER = String(resolver);
  process.env.LOUPE_JOURNEY_URL = running.url;
  process.env.LOUPE_JOURNEY_KEY = running.key;
  process.env.LOUPE_JOURNEY_PAGE = running.page;
  process.env.LOUPE_JOURNEY_LOG = running.log;
  return () => running.stop();
}
