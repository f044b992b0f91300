import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTHeaderParameters, type JWTPayload } from "jose";
import Provider from "oidc-provider";

/** What becomes of an ID token on its way out. */
export type Forge = (claims: JWTPayload, sign: (claims: JWTPayload, head?: Partial<JWTHeaderParameters>, key?: CryptoKey | Uint8Array) => Promise<string>) => Promise<string>;

/** A certified provider of OpenID Connect with one client, on an address of its own. */
export interface Running {
  issuer: string;
  /** Set by a test that plays a provider gone bad: it holds the real keys. */
  forge?: Forge;
  /** Set by a test: whom the provider says the person is where it is asked with the access token. */
  somebodyElse?: boolean;
  stop(): Promise<void>;
}

export const CLIENT = { id: "club", secret: "the secret of the club" };

/** Starts it; `callbacks` are the only addresses to which it sends people back. */
export async function start(callbacks: string[]): Promise<Running> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: "one", alg: "RS256", use: "sig" };
  const probe = (await import("node:http")).createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.2", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  const issuer = `http://127.0.0.2:${port}`;
  const running: Running = { issuer, stop: async () => undefined };

  const provider = new Provider(issuer, {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: callbacks, grant_types: ["authorization_code"], response_types: ["code"] }],
    jwks: { keys: [key] },
    cookies: { keys: ["the cookies of a test"] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    ttl: { Session: 3600, Grant: 3600, Interaction: 600, IdToken: 300, AccessToken: 300, AuthorizationCode: 60 },
    findAccount: (_context, id) => ({
      accountId: id,
      // Addresses of the house are verified, others are not.
      claims: async () => ({ sub: id, email: `${id}@example.com`, email_verified: !id.startsWith("unproven"), name: id }),
    }),
  });
  provider.use(async (context, next) => {
    await next();
    // Pages are text, and every text has a method by the name of `sub`.
    if (typeof context.body !== "object") return;
    const body = context.body as { id_token?: string; sub?: string } | null;
    if (running.forge && body?.id_token) {
      const claims = JSON.parse(Buffer.from(body.id_token.split(".")[1] ?? "", "base64url").toString()) as JWTPayload;
      body.id_token = await running.forge(claims, (said, head = {}, other = privateKey) =>
        new SignJWT(said).setProtectedHeader({ alg: "RS256", kid: "one", ...head }).sign(other),
      );
    }
    if (running.somebodyElse && body?.sub) body.sub = "somebody-else";
  });
  // It says of itself that it is not for production; tests are none.
  const server = await new Promise<import("node:http").Server>((resolve) => {
    const listening = provider.listen(port, "127.0.0.2", () => resolve(listening));
  });
  running.stop = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  return running;
}
