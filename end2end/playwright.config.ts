import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "journeys",
  workers: 1,
  timeout: 90_000,
  globalTimeout: 20 * 60_000,
  forbidOnly: true,
  globalSetup: "./setup.ts",
  reporter: "./reporter.ts",
  use: {
    viewport: { width: 1280, height: 900 },
    launchOptions: {
      executablePath: process.env.LOUPE_TEST_CHROMIUM ?? "/usr/bin/chromium",
      // A container's /dev/shm is small, and root has no sandbox.
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    },
    trace: "off",
  },
});
