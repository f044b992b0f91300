import { start } from "./server.ts";

/** One server and one demo for all journeys; the returned function stops it. */
export default async function setup(): Promise<() => Promise<void>> {
  const running = await start();
  process.env.LOUPE_JOURNEY_URL = running.url;
  process.env.LOUPE_JOURNEY_KEY = running.key;
  process.env.LOUPE_JOURNEY_PAGE = running.page;
  return () => running.stop();
}
