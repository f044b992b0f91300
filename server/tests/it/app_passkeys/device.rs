//! A device with a passkey, and what the page says that asked it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Somebody is there, and unlocked the device.
pub const UNLOCKED: u8 = 0x05;

/// The device made a passkey.
const MADE: u8 = 0x40;

/// What a page asked for, and what it is; a test changes one thing of it.
pub struct Asked {
    pub kind: &'static str,
    pub challenge: String,
    pub origin: String,
    pub crosses: bool,
    pub host: String,
    pub flags: u8,
    /// Whose passkey the device says it is, in base64url.
    pub handle: String,
    pub spoiled: bool,
}

impl Asked {
    fn said(&self) -> Vec<u8> {
        let said = json!({"type": self.kind, "challenge": self.challenge, "origin": self.origin, "crossOrigin": self.crosses});
        said.to_string().into_bytes()
    }
}

enum Key {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A device with one passkey. It counts its signatures.
pub struct Device {
    key: Key,
    id: Vec<u8>,
    pub handle: String,
    pub count: u32,
}

/// Fields of a form.
pub type Form = Vec<(&'static str, String)>;

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Device {
    fn new(key: Key) -> Self {
        Self {
            key,
            id: rand::random::<[u8; 32]>().to_vec(),
            handle: String::new(),
            count: 0,
        }
    }

    pub fn p256() -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::new(Key::P256(
            EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap(),
        ))
    }

    pub fn ed25519() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::new(Key::Ed25519(
            Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap(),
        ))
    }

    /// The id of its passkey, as pages send it.
    pub fn id(&self) -> String {
        text(&self.id)
    }

    /// The public key, as COSE writes it.
    fn public(&self) -> Vec<u8> {
        match &self.key {
            Key::P256(pair) => {
                // A byte that says how it is written, and both numbers.
                let point: &[u8] = pair.public_key().as_ref();
                [
                    &b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20"[..],
                    &point[1..33],
                    &b"\x22\x58\x20"[..],
                    &point[33..65],
                ]
                .concat()
            }
            Key::Ed25519(pair) => [
                &b"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20"[..],
                pair.public_key().as_ref(),
            ]
            .concat(),
        }
    }

    fn told(&self, host: &str, flags: u8) -> Vec<u8> {
        let mut told = Sha256::digest(host.as_bytes()).to_vec();
        told.push(flags);
        told.extend(self.count.to_be_bytes());
        told
    }

    /// Makes its passkey; answers what the page sends.
    pub fn make(&self, asked: &Asked) -> Form {
        let mut told = self.told(&asked.host, asked.flags | MADE);
        told.extend([0; 16]);
        told.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        told.extend(&self.id);
        told.extend(self.public());
        let mut whole = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".to_vec();
        whole.push(u8::try_from(told.len()).unwrap());
        whole.extend(told);
        vec![
            ("client_data", text(&asked.said())),
            ("attestation", text(&whole)),
        ]
    }

    /// Signs once more; answers what the page sends.
    pub fn sign(&mut self, asked: &Asked) -> Form {
        self.count += 1;
        let (said, told) = (asked.said(), self.told(&asked.host, asked.flags));
        let message = [&told[..], &Sha256::digest(&said)[..]].concat();
        let mut signature = match &self.key {
            Key::P256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), &message).unwrap();
                signature.as_ref().to_vec()
            }
            Key::Ed25519(pair) => pair.sign(&message).as_ref().to_vec(),
        };
        if asked.spoiled {
            let last = signature.last_mut().unwrap();
            *last ^= 1;
        }
        vec![
            ("credential", self.id()),
            ("client_data", text(&said)),
            ("authenticator_data", text(&told)),
            ("signature", text(&signature)),
            ("user_handle", asked.handle.clone()),
        ]
    }
}
