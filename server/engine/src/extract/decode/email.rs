//! E-mails to their text, with the texts of what is attached to them.

use loupe_wire::Object;
use mail_parser::{Address, Message, MessageParser, MimeHeaders};
use serde_json::json;

use super::{Format, Gaps, TextFile, html};
use crate::extract::{
    Claim, ExtractError, Result,
    dropped::{ATTACHMENT_LIMIT, UNREADABLE_ATTACHMENT},
};

/// Attachments that are read.
const MAX_ATTACHMENTS: usize = 50;

/// Headers that mails begin with. Two of them at the start of a file make a mail.
const HEADERS: &[&str] = &[
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "received",
    "return-path",
    "delivered-to",
    "reply-to",
];

/// Whether the bytes begin as a mail does.
pub fn is_email(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4 << 10)]);
    let (mut known, mut lines) = (Vec::new(), 0);
    for line in head.lines() {
        if line.is_empty() || lines > 60 {
            break;
        }
        lines += 1;
        // Folded lines belong to the header before.
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((name, _)) = line.split_once(':') else {
            return false;
        };
        let name = name.to_ascii_lowercase();
        if HEADERS.contains(&name.as_str()) && !known.contains(&name) {
            known.push(name);
        }
    }
    known.len() >= 3
}

/// `read` makes the text of an attachment; one that has none keeps its name only.
pub fn decode(bytes: &[u8], read: impl Fn(&Claim, &[u8]) -> Result<TextFile>) -> Result<TextFile> {
    let message = MessageParser::default()
        .parse(bytes)
        .filter(|message| !message.headers().is_empty())
        .ok_or_else(|| ExtractError::permanent("the e-mail is broken: it cannot be read"))?;
    let mut pages = vec![body(&message)];
    let (mut names, mut gaps) = (Vec::new(), Gaps::default());
    for part in message.attachments() {
        let name = part.attachment_name().unwrap_or("attachment").to_owned();
        if names.len() < MAX_ATTACHMENTS {
            let claim = Claim {
                filename: Some(name.clone()),
                mime: part.content_type().map(|kind| {
                    format!(
                        "{}/{}",
                        kind.ctype(),
                        kind.subtype().unwrap_or("octet-stream")
                    )
                }),
                property_type: None,
            };
            match read(&claim, part.contents()) {
                Ok(file) => {
                    let text = file.pages.join("\n\n");
                    pages.push(format!("# {name}\n\n{}", text.trim()));
                    gaps.dropped.add(&file.unread());
                }
                Err(_) => gaps.dropped.add_pages(UNREADABLE_ATTACHMENT, 1),
            }
        } else {
            gaps.dropped.add_pages(ATTACHMENT_LIMIT, 1);
        }
        names.push(name);
    }
    let subject = message.subject().map(str::trim).unwrap_or_default();
    if pages.iter().all(|page| page.trim().is_empty()) && subject.is_empty() {
        return Err(ExtractError::permanent("the e-mail holds no text"));
    }
    Ok(TextFile {
        format: Format::Email,
        title: (!subject.is_empty()).then(|| subject.to_owned()),
        pages,
        info: info(&message, names),
        gaps,
    })
}

/// The plain text where the sender wrote one, else the page.
fn body(message: &Message<'_>) -> String {
    let mut texts = Vec::new();
    for part in message.text_bodies() {
        let text = String::from_utf8_lossy(part.contents());
        let text = match part.is_text_html() {
            true => html::body(&text).unwrap_or_default(),
            false => text.trim().replace('\0', ""),
        };
        texts.push(text);
    }
    texts.join("\n\n").trim().to_owned()
}

fn info(message: &Message<'_>, attachments: Vec<String>) -> Object {
    let mut info = Object::new();
    for (name, addresses) in [
        ("from", message.from()),
        ("to", message.to()),
        ("cc", message.cc()),
    ] {
        if let Some(addresses) = addresses {
            info.insert(name.to_owned(), json!(written(addresses)));
        }
    }
    if let Some(date) = message.date() {
        info.insert("date".to_owned(), json!(date.to_rfc3339()));
    }
    if let Some(id) = message.message_id() {
        info.insert("message_id".to_owned(), json!(id));
    }
    if !attachments.is_empty() {
        info.insert("attachments".to_owned(), json!(attachments));
    }
    info
}

/// `Name <address>`, one after the other.
fn written(addresses: &Address<'_>) -> Vec<String> {
    let one = |name: Option<&str>, address: Option<&str>| match (name, address) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    };
    addresses
        .iter()
        .map(|address| one(address.name(), address.address()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_told_by_its_headers() {
        let mail =
            "Received: by a\n\tfor b\nFrom: a@example.com\nTo: b@example.com\nSubject: x\n\nwords";
        assert!(is_email(mail.as_bytes()));
        assert!(!is_email(b"From: here\nto there, and back again"));
        assert!(!is_email(b"To do: buy milk\n\nDate: tomorrow"));
    }
}
