// Passkeys on the pages of /_auth: what the server wants of a device is asked for, and what the device answers is sent as a form.
(() => {
  "use strict";
  const form = document.querySelector("form[data-passkey]");
  if (!form || !window.PublicKeyCredential || !navigator.credentials) return;
  const kind = form.dataset.passkey;
  const button = form.querySelector("button");
  const problem = form.querySelector("[role=alert]");
  const words = {
    NotAllowedError: "Nothing was confirmed. Try again, or take another way.",
    InvalidStateError: "This device has a passkey of yours already.",
    SecurityError: "This browser has no passkeys at this address.",
  };
  let busy = false;
  let offered = null;

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  // What the server wants of a device, with bytes where it wrote text.
  const ask = async () => {
    const answer = await fetch("/_auth/passkeys/options", {
      method: "POST",
      credentials: "same-origin",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ for: kind }),
    });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error ? told.error.message : "That did not work.");
    const wanted = { ...told, challenge: bytes(told.challenge) };
    if (told.user) wanted.user = { ...told.user, id: bytes(told.user.id) };
    if (told.excludeCredentials) wanted.excludeCredentials = told.excludeCredentials.map((one) => ({ ...one, id: bytes(one.id) }));
    return wanted;
  };

  const send = (credential) => {
    const said = credential.response;
    const answers = {
      credential: credential.rawId,
      client_data: said.clientDataJSON,
      attestation: said.attestationObject,
      authenticator_data: said.authenticatorData,
      signature: said.signature,
      user_handle: said.userHandle,
    };
    for (const name in answers) {
      const field = form.elements.namedItem(name);
      if (field && answers[name]) field.value = text(answers[name]);
    }
    form.submit();
  };

  const awake = () => {
    if (!document.hidden) return Promise.resolve();
    return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  };

  // Passkeys among what the browser fills in. The server's question holds for five minutes, so it is asked anew before.
  const offer = async () => {
    const here = kind === "sign-in" && document.querySelector('input[autocomplete~="webauthn"]');
    if (!here || !PublicKeyCredential.isConditionalMediationAvailable) return;
    if (!(await PublicKeyCredential.isConditionalMediationAvailable())) return;
    const publicKey = await ask();
    if (busy) return;
    const mine = new AbortController();
    offered = mine;
    const timer = setTimeout(() => mine.abort(), 240000);
    try {
      send(await navigator.credentials.get({ mediation: "conditional", signal: mine.signal, publicKey }));
    } catch {
      if (!mine.signal.aborted || busy) return;
      await awake();
      offer().catch(() => {});
    } finally {
      clearTimeout(timer);
    }
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    button.disabled = true;
    problem.hidden = true;
    if (offered) offered.abort();
    try {
      const publicKey = await ask();
      const devices = navigator.credentials;
      send(await (kind === "add" ? devices.create({ publicKey }) : devices.get({ publicKey })));
    } catch (error) {
      problem.textContent = words[error.name] || error.message;
      problem.hidden = false;
      button.disabled = false;
      busy = false;
      offer().catch(() => {});
    }
  });
  // A page that is gone back to.
  addEventListener("pageshow", () => {
    busy = false;
    button.disabled = false;
  });

  document.querySelectorAll("[data-without]").forEach((one) => { one.hidden = true; });
  form.hidden = false;
  // Without an offer, the button is there.
  offer().catch(() => {});
})();
