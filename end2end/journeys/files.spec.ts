import { get, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect } from "@playwright/test";
import { test, url } from "./help.ts";

/** A file as a caller gets it who takes these encodings. */
async function taken(path: string, encodings: string): Promise<{ head: IncomingMessage; body: Buffer }> {
  const head = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url()}${path}`, { headers: { "accept-encoding": encodings } }, resolve).once("error", reject);
  });
  return { head, body: await buffer(head) };
}

test("built files are the same for those who take brotli, gzip or neither", async () => {
  const page = (await taken("/console/", "identity")).body.toString();
  const font = /[\w./-]+\.woff2/.exec(page)?.[0] ?? "";
  const script = /"([\w./-]+\.js)"/.exec(page)?.[1] ?? "";
  const address = (name: string): string => new URL(name, `${url()}/console/`).pathname;
  for (const path of ["/console/", "/embed.js", address(script)]) {
    const plain = await taken(path, "identity");
    expect([plain.head.statusCode, plain.head.headers["content-encoding"]], path).toEqual([200, undefined]);
    // Browsers take brotli by TLS alone.
    const gzip = await taken(path, "gzip, deflate");
    expect(gzip.head.headers["content-encoding"], path).toBe("gzip");
    expect(gunzipSync(gzip.body).equals(plain.body), path).toBe(true);
    const brotli = await taken(path, "gzip, deflate, br");
    expect(brotli.head.headers["content-encoding"], path).toBe("br");
    expect(brotliDecompressSync(brotli.body).equals(plain.body), path).toBe(true);
    expect(brotli.body.length, path).toBeLessThan(gzip.body.length);
    for (const one of [plain, gzip, brotli]) {
      expect(one.head.headers["content-type"], path).toBe(plain.head.headers["content-type"]);
      expect(one.head.headers.vary, path).toMatch(/^accept-encoding$/i);
    }
  }
  // What is small already is sent as it is.
  expect(font).not.toBe("");
  expect((await taken(address(font), "gzip, deflate, br")).head.headers["content-encoding"]).toBe(undefined);
  expect((await taken("/assets/nothing.js", "br")).head.statusCode).toBe(404);
});
