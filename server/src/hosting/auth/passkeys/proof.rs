//! What a browser brings of a passkey, checked in the steps of Web Authentication (level 3, 7.1 and 7.2). Who made the device
//! is not asked for: no statement of its maker is wanted, and one that comes all the same is not looked at.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::cbor::{self, Value};

/// Why a proof is none.
pub(super) type Fault = &'static str;

/// Kinds of signatures, by their numbers in COSE, as devices are asked for them: ES256, EdDSA, RS256.
pub(super) const ALGORITHMS: [i64; 3] = [-7, -8, -257];

// Flags of what a device says.
const PRESENT: u8 = 1;
const VERIFIED: u8 = 1 << 2;
const MAY_BE_COPIED: u8 = 1 << 3;
const IS_COPIED: u8 = 1 << 4;
const ATTESTED: u8 = 1 << 6;
const EXTENDED: u8 = 1 << 7;

const SHORT: Fault = "what the device says ends too early";

/// What a browser says of what it was asked, and by whom.
#[derive(Deserialize)]
struct Said {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    crosses: bool,
}

/// The challenge that a browser answers, on a page of this very origin.
pub(super) fn challenge(said: &[u8], kind: &str, origin: &str) -> Result<String, Fault> {
    let said: Said =
        serde_json::from_slice(said).map_err(|_| "what the browser says cannot be read")?;
    if said.kind != kind {
        return Err("the browser was asked for something else");
    }
    if said.origin != origin || said.crosses {
        return Err("the browser was asked by a page of another origin");
    }
    Ok(said.challenge)
}

/// What a device says each time.
struct Told<'a> {
    flags: u8,
    count: u32,
    rest: &'a [u8],
}

/// What a device says to this host, with somebody there who unlocked it.
fn told<'a>(bytes: &'a [u8], host: &str) -> Result<Told<'a>, Fault> {
    let (asker, rest) = bytes.split_at_checked(32).ok_or(SHORT)?;
    let (flags, rest) = rest.split_first().ok_or(SHORT)?;
    let (count, rest) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
    if host.is_empty() || asker != &Sha256::digest(host.as_bytes())[..] {
        return Err("the device was asked by another host");
    }
    if flags & PRESENT == 0 || flags & VERIFIED == 0 {
        return Err("the device did not ask who is there");
    }
    if flags & MAY_BE_COPIED == 0 && flags & IS_COPIED != 0 {
        return Err("the device has copied what it may not copy");
    }
    Ok(Told {
        flags: *flags,
        count: u32::from_be_bytes(*count),
        rest,
    })
}

/// A passkey as a device makes it.
#[derive(Debug)]
pub(super) struct Made {
    /// Its id, in base64url.
    pub id: String,
    /// Its public key, as COSE has it.
    pub key: Vec<u8>,
    /// How often the device has signed; always 0 where it does not count.
    pub count: i64,
}

/// The passkey that a device made for this host.
pub(super) fn made(attestation: &[u8], host: &str) -> Result<Made, Fault> {
    let mut after = attestation;
    let whole = cbor::read(&mut after).filter(|_| after.is_empty());
    let bytes = whole.as_ref().and_then(|whole| whole.named("authData"));
    let told = told(bytes.ok_or("what the device made cannot be read")?, host)?;
    if told.flags & ATTESTED == 0 {
        return Err("the device made no passkey");
    }
    // Sixteen bytes are the device's model.
    let rest = told.rest.get(16..).ok_or(SHORT)?;
    let (length, rest) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (id, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
    if !(1..=1_023).contains(&id.len()) {
        return Err("the id of the passkey is too short or too long");
    }
    let mut after = rest;
    let cose = cbor::read(&mut after).ok_or("the key cannot be read")?;
    if !after.is_empty() && told.flags & EXTENDED == 0 {
        return Err("something comes after the key");
    }
    Key::of(&cose).ok_or("the key is of a kind that nobody asked for")?;
    let (key, _) = rest.split_at(rest.len() - after.len());
    Ok(Made {
        id: URL_SAFE_NO_PAD.encode(id),
        key: key.to_vec(),
        count: i64::from(told.count),
    })
}

/// What comes with a signature.
pub(super) struct Signed<'a> {
    /// What the browser says.
    pub said: &'a [u8],
    /// What the device says.
    pub told: &'a [u8],
    pub signature: &'a [u8],
}

/// How often the device has signed, after it did so for this host with the key.
pub(super) fn signed(key: &[u8], sent: &Signed<'_>, host: &str) -> Result<i64, Fault> {
    let told = told(sent.told, host)?;
    let mut after = key;
    let cose = cbor::read(&mut after).ok_or("the key cannot be read")?;
    let key = Key::of(&cose).ok_or("the key is of a kind that nobody asked for")?;
    let said = Sha256::digest(sent.said);
    let message = [sent.told, &said[..]].concat();
    if !key.signed(&message, sent.signature) {
        return Err("the signature is not that of the passkey");
    }
    Ok(i64::from(told.count))
}

/// A public key.
enum Key<'a> {
    P256 { x: &'a [u8], y: &'a [u8] },
    Ed25519(&'a [u8]),
    Rsa { n: &'a [u8], e: &'a [u8] },
}

impl<'a> Key<'a> {
    /// The key of a map of COSE (RFC 9053), if it is of a kind that devices are asked for.
    fn of(cose: &Value<'a>) -> Option<Self> {
        const P256: i64 = 1;
        const ED25519: i64 = 6;
        let point = |label| cose.bytes(label).filter(|bytes| bytes.len() == 32);
        match (cose.int(1)?, cose.int(3)?) {
            (2, -7) if cose.int(-1)? == P256 => Some(Self::P256 {
                x: point(-2)?,
                y: point(-3)?,
            }),
            (1, -8) if cose.int(-1)? == ED25519 => Some(Self::Ed25519(point(-2)?)),
            (3, -257) => {
                let (n, e) = (cose.bytes(-1)?, cose.bytes(-2)?);
                let good = (256..=512).contains(&n.len()) && (1..=8).contains(&e.len());
                good.then_some(Self::Rsa { n, e })
            }
            _ => None,
        }
    }

    /// Whether this is the key's signature of the message.
    fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let outcome = match self {
            Self::P256 { x, y } => {
                let point = [&[4_u8][..], *x, *y].concat();
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, point)
                    .verify(message, signature)
            }
            Self::Ed25519(point) => {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(message, signature)
            }
            Self::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(
                &signature::RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
        };
        outcome.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_ends_too_early_is_believed_or_breaks() {
        let mut told = Sha256::digest(b"club.localhost").to_vec();
        told.extend([PRESENT | VERIFIED | ATTESTED, 0, 0, 0, 7]);
        told.extend([0; 16]);
        told.extend([0, 1, 9]);
        told.extend(b"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20");
        told.extend([5; 32]);
        let whole = |told: &[u8]| {
            let mut whole = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".to_vec();
            whole.push(u8::try_from(told.len()).unwrap());
            whole.extend(told);
            whole
        };
        let good = made(&whole(&told), "club.localhost").unwrap();
        assert_eq!(
            (good.id.as_str(), good.count, good.key.len()),
            ("CQ", 7, 42)
        );
        made(&whole(&told), "elsewhere.localhost").unwrap_err();
        for end in 0..told.len() {
            made(&whole(&told[..end]), "club.localhost").unwrap_err();
        }
        told.push(0);
        made(&whole(&told), "club.localhost").unwrap_err();
    }

    #[test]
    fn a_page_says_who_it_is() {
        let said = |crosses: bool| {
            format!(
                r#"{{"type":"webauthn.get","challenge":"abc","origin":"http://a.localhost:1","crossOrigin":{crosses},"more":[]}}"#
            )
        };
        let asked = |said: &str, kind: &str, origin: &str| challenge(said.as_bytes(), kind, origin);
        let (get, here) = ("webauthn.get", "http://a.localhost:1");
        assert_eq!(asked(&said(false), get, here), Ok("abc".to_owned()));
        for (kind, origin) in [
            ("webauthn.create", here),
            (get, "http://a.localhost"),
            (get, "https://a.localhost:1"),
            (get, "http://b.localhost:1"),
        ] {
            asked(&said(false), kind, origin).unwrap_err();
        }
        asked(&said(true), get, here).unwrap_err();
        asked("", get, here).unwrap_err();
    }

    // A key of 2048 bits, and its signature of what the test below makes, by OpenSSL.
    const MODULUS: &str = "rsTLGtsfuvoCqwqWIn6z3wyI6yOUeNA4BnRHRMsgYpIEp5MoBv8AwXWF4gSqjiJawUjdv_nqFlcCaaSqr_QadpAoq2hsEQSHhoWEEuHwWIJO3F\
        rXCXuRlVFa0JOmWVp-zZMiSNKbrYJo3Wg3Bler5ZPrHRBs6j19hHJUx-LDZgv5GO25-qevF9am90d3-9N-z95z2QfNXZbNa-O3Jubny0mQ-_2Y\
        0Ye8YpLv4VBN_BvwbYIGqDQlGSj3SdC-H45ANVjut1jGjvNb14PcpA8bxAhCjClOnaFudQER0fSMp1U7yU21ywps97ynZhfRznodx2UWqBBtIW\
        FxTR2m6_wE-w";
    const SIGNATURE: &str = "YV2ubUzxcTBBQw3M0h5crEVHSKX10aR1kuZySi1FyYhHfxWDJydfO6us8QA2G9gC7PNg_V-oU4kYhexQIOhY451geV7v6KG5LPnJ5YIKfr0aeP\
        1xxAT4zA-9v8mVQdYgbvop-f_pIEqL7mzQdwR245HLAdsB7Xh63skHkn6Dd69kr76hE02Eypm4cpv-CdRlINRMF5YG3jOKuJs2JaDshrapCtYf\
        vGn7KhiYNCGWZumtsc66HWA_p0l4TsT0hg8wIJMPcO_e41GDbD6nrAhHwNnbaRhYiUbAqEQ1Z3j4eeMaR0SAVUw5tAcXvHR5HnTKNLZDGqI_NI\
        aKTof5ybth0Q";

    #[test]
    fn keys_of_rsa_are_known_too() {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let mut key = b"\xa4\x01\x03\x03\x39\x01\x00\x20\x59\x01\x00".to_vec();
        key.extend(bytes(MODULUS));
        key.extend(b"\x21\x43\x01\x00\x01");
        let mut told = Sha256::digest(b"club.localhost").to_vec();
        told.extend([PRESENT | VERIFIED, 0, 0, 0, 9]);
        let signature = bytes(SIGNATURE);
        let sent = |said| Signed {
            said,
            told: &told,
            signature: &signature,
        };
        assert_eq!(signed(&key, &sent(b"said"), "club.localhost"), Ok(9));
        signed(&key, &sent(b"else"), "club.localhost").unwrap_err();
        signed(&key, &sent(b"said"), "localhost").unwrap_err();
        signed(&key[..key.len() - 1], &sent(b"said"), "club.localhost").unwrap_err();
    }
}
