import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "journeys",
  // Files beside one another, each worker with a server of its own (setup.ts); `workers: 1` has them one after the other.
  workers: 2,
  fullyParallel: false,
  // Two browsers and two servers share the machine, which may be busy with other things: what comes comes.
  timeout: 480_000,
  expect: { timeout: 45_000 },
  globalTimeout: 50 * 60_000,
  // One more chance, in a new browser and on a new server (help.ts): what passes only then is told apart from what passed
  // at once (reporter.ts).
  retries: 1,
  forbidOnly: true,
  globalSetup: "./setup.ts",
  reporter: "./reporter.ts",
  use: {
    actionTimeout: 60_000,
    viewport: { width: 1280, height: 900 },
    launchOptions: {
      executablePath: process.env.LOUPE_TEST_CHROMIUM ?? "/usr/bin/chromium",
      // A container's /dev/shm is small, and root has no sandbox.
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    },
    trace: "off",
  },
});
