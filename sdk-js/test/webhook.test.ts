import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo } from "node:net";
import { it } from "node:test";

import { Webhook } from "standardwebhooks";

import { start } from "../../end2end/server.ts";
import { Loupe } from "../dist/client/client.js";

it("an event arrives within a second and a library verifies it", { timeout: 180_000 }, async () => {
  const server = await start({ demo: false, settings: { LOUPE_OUTBOUND__ALLOW: '["127.0.0.2"]' } });
  const receiver = createServer();
  try {
    receiver.listen(0, "127.0.0.2");
    await once(receiver, "listening");
    let arrived: (message: { headers: IncomingHttpHeaders; body: string }) => void = () => undefined;
    receiver.on("request", (request, response) => {
      let body = "";
      request.on("data", (piece: Buffer) => (body += piece.toString()));
      request.on("end", () => {
        response.end();
        arrived({ headers: request.headers, body });
      });
    });
    const loupe = new Loupe({ url: server.url, key: server.key });
    const url = `http://127.0.0.2:${(receiver.address() as AddressInfo).port}/`;
    const { data: webhook } = await loupe.api.POST("/v1/organizations/webhooks", {
      body: { webhook_name: "library", event_types: ["collection.created"], channels: [{ channel: "webhook", configs: { url } }] },
    });
    const secret = (webhook?.channels[0]?.configs as { signing_secret: string }).signing_secret;
    const { data: namespace } = await loupe.api.POST("/v1/namespaces", { body: { namespace_name: "told" } });
    // Each one arrives; a machine that is busy with something else may hold up some, and not all of them.
    const took: number[] = [];
    do {
      const received = new Promise<{ headers: IncomingHttpHeaders; body: string }>((resolve) => (arrived = resolve));
      const began = Date.now();
      await loupe.in(namespace?.namespace_id ?? "").api.POST("/v1/collections", {
        body: {
          collection_name: `things ${took.length}`,
          source: { type: "direct_upsert" },
          feature_extractor: { feature_extractor_name: "passthrough_extractor", version: "v1" },
        },
      });
      const { headers, body } = await received;
      took.push(Date.now() - began);
      const told = new Webhook(secret).verify(body, headers as Record<string, string>) as { event_type: string };
      assert.equal(told.event_type, "collection.created");
      assert.throws(() => new Webhook(secret).verify(`${body} `, headers as Record<string, string>));
    } while (Math.min(...took) >= 1000 && took.length < 8);
    assert.ok(Math.min(...took) < 1000, `they took ${took.join(", ")} ms`);
  } finally {
    receiver.close();
    await server.stop();
  }
});
