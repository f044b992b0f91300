//! E-mails and mailboxes to their text, with the texts of what is attached to them.

use loupe_wire::Object;
use mail_parser::mailbox::mbox::MessageIterator;
use mail_parser::{Address, Message, MessageParser, MimeHeaders};
use serde_json::json;

use super::{Format, Gaps, TextFile, html};
use crate::extract::{
    Claim, ExtractError, Result,
    dropped::{ATTACHMENT_LIMIT, MAIL_LIMIT, UNREADABLE, UNREADABLE_ATTACHMENT},
};

/// Mails of a mailbox that are read.
const MAX_MAILS: usize = 5_000;

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
    for line in head.lines().skip(usize::from(is_mailbox(bytes))) {
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

/// Whether the bytes begin as a file of mails does (mbox): with a line for the postman.
pub fn is_mailbox(bytes: &[u8]) -> bool {
    bytes.starts_with(b"From ")
}

/// `read` makes the text of an attachment; one that has none keeps its name only.
pub fn decode(bytes: &[u8], read: impl Fn(&Claim, &[u8]) -> Result<TextFile>) -> Result<TextFile> {
    if !is_mailbox(bytes) {
        return mail(bytes, &read);
    }
    let (mut mails, mut gaps) = (Vec::new(), Gaps::default());
    // Memory does not fail to be read.
    for piece in MessageIterator::new(bytes).map_while(std::io::Result::ok) {
        if mails.len() == MAX_MAILS {
            gaps.dropped.add_pages(MAIL_LIMIT, 1);
            continue;
        }
        match mail(piece.contents(), &read) {
            Ok(mail) => mails.push(mail),
            Err(_) => gaps.dropped.add_pages(UNREADABLE, 1),
        }
    }
    if let ([_], true) = (mails.as_slice(), gaps.dropped.is_empty()) {
        return Ok(mails.remove(0));
    }
    mailbox(mails, gaps)
}

/// The pages of all mails. Each begins with what the mail says of itself.
fn mailbox(mails: Vec<TextFile>, mut gaps: Gaps) -> Result<TextFile> {
    if mails.is_empty() {
        return Err(ExtractError::permanent(
            "the mailbox holds no e-mail that can be read",
        ));
    }
    let mut info = Object::new();
    info.insert("mails".to_owned(), json!(mails.len()));
    let mut pages = Vec::new();
    for mail in mails {
        gaps.dropped.add(&mail.gaps.dropped);
        let first = pages.len();
        pages.extend(mail.pages);
        pages[first] = headed(mail.title.as_deref(), &mail.info, &pages[first]);
    }
    Ok(TextFile {
        format: Format::Email,
        title: None,
        pages,
        info,
        gaps,
    })
}

/// A mail's text below its subject, its sender and its date.
fn headed(subject: Option<&str>, info: &Object, text: &str) -> String {
    let from = info.get("from").and_then(|from| from.as_array());
    let from = from.into_iter().flatten();
    let from: Vec<&str> = from.filter_map(|from| from.as_str()).collect();
    let date = info.get("date").and_then(|date| date.as_str());
    let subject = subject.map(|subject| format!("# {subject}"));
    let about = [Some(from.join(", ")), date.map(str::to_owned)];
    let about = about.into_iter().flatten().filter(|one| !one.is_empty());
    let about = about.collect::<Vec<_>>().join("\n");
    let parts = subject.into_iter().chain([about, text.to_owned()]);
    let parts = parts.filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

fn mail(bytes: &[u8], read: &impl Fn(&Claim, &[u8]) -> Result<TextFile>) -> Result<TextFile> {
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
        let posted = format!("From ada@example.com Sat Nov 21 08:00:00 2026\n{mail}");
        assert!(is_email(posted.as_bytes()));
        assert!(!is_email(b"From: here\nto there, and back again"));
        assert!(!is_email(b"To do: buy milk\n\nDate: tomorrow"));
    }
}
