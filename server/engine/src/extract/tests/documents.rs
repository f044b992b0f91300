//! Office documents, books and mails through real worker processes.

use super::*;

#[tokio::test]
async fn pages_and_tables_of_a_word_document() {
    let file = samples::docx(&[&["Of Bees", "They dance."], &["The second page"]]);
    let read = text(&workers(), "bees.docx", file).await.expect("read");
    assert_eq!(read.format, Format::Document);
    assert_eq!(read.title.as_deref(), Some("Of Bees"));
    assert_eq!(read.info["author"], "Ada");
    assert_eq!(read.pages.len(), 2, "{:?}", read.pages);
    assert!(read.pages[0].contains("They dance."), "{:?}", read.pages);
    assert!(
        read.pages[1].starts_with("The second page"),
        "{:?}",
        read.pages
    );
    assert!(read.pages[1].contains("cell one"), "{:?}", read.pages);
}

#[tokio::test]
async fn what_stands_above_and_below_the_pages_of_a_word_document() {
    let main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let packages = "http://schemas.openxmlformats.org/package/2006";
    let kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
    let paragraph = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let types = format!(
        "<Types xmlns=\"{packages}/content-types\"><Default Extension=\"rels\" \
         ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" \
         ContentType=\"application/xml\"/><Override PartName=\"/word/document.xml\" ContentType=\"{kind}\"/></Types>"
    );
    let relations = |targets: &[(&str, &str, &str)]| {
        let one = |(id, kind, target): &(&str, &str, &str)| {
            format!("<Relationship Id=\"{id}\" Type=\"{office}/{kind}\" Target=\"{target}\"/>")
        };
        let all: String = targets.iter().map(one).collect();
        format!("<Relationships xmlns=\"{packages}/relationships\">{all}</Relationships>")
    };
    let document = format!(
        "<w:document xmlns:w=\"{main}\" xmlns:r=\"{office}\"><w:body>{}<w:p><w:r><w:br w:type=\"page\"/></w:r></w:p>{}\
         <w:sectPr><w:headerReference w:type=\"default\" r:id=\"a\"/><w:footerReference w:type=\"default\" r:id=\"b\"/>\
         </w:sectPr></w:body></w:document>",
        paragraph("They dance."),
        paragraph("They sleep."),
    );
    let margin = |name: &str, text: &str| {
        format!(
            "<w:{name} xmlns:w=\"{main}\">{}</w:{name}>",
            paragraph(text)
        )
    };
    let file = samples::zip(&[
        ("[Content_Types].xml", types.as_bytes()),
        (
            "_rels/.rels",
            relations(&[("m", "officeDocument", "word/document.xml")]).as_bytes(),
        ),
        (
            "word/_rels/document.xml.rels",
            relations(&[("a", "header", "h.xml"), ("b", "footer", "f.xml")]).as_bytes(),
        ),
        ("word/document.xml", document.as_bytes()),
        (
            "word/h.xml",
            margin("hdr", "Society of Beekeepers").as_bytes(),
        ),
        ("word/f.xml", margin("ftr", "Secret").as_bytes()),
    ]);
    let read = text(&workers(), "bees.docx", file).await.expect("read");
    let expected = [
        "Society of Beekeepers\n\nThey dance.",
        "They sleep.\n\nSecret",
    ];
    assert_eq!(read.pages, expected);
}

#[tokio::test]
async fn what_is_filled_into_the_form_of_a_pdf() {
    use pdf_extract::{Dictionary, Document, Object};

    let words = |text: &str| Object::string_literal(text);
    let mut document =
        Document::load_mem(&samples::pdf(&["Join us", "Thank you"])).expect("honest");
    let field = |more: Vec<(&str, Object)>| {
        let mut field = Dictionary::from_iter([("Subtype", Object::Name(b"Widget".to_vec()))]);
        field.extend(&Dictionary::from_iter(more));
        field
    };
    let above =
        Dictionary::from_iter([("T", words("bees")), ("V", Object::Name(b"many".to_vec()))]);
    let above = document.add_object(above);
    let fields = [
        vec![
            ("TU", words("Your name")),
            ("T", words("f1[0]")),
            ("V", words("Ada")),
        ],
        vec![("T", words("f2[0]")), ("V", words("London"))],
        vec![("T", words("empty")), ("V", words(" "))],
        vec![("T", words("box")), ("V", Object::Name(b"Off".to_vec()))],
        vec![
            ("T", words("pin")),
            ("V", words("1234")),
            ("Ff", Object::Integer(1 << 13)),
        ],
        vec![("Parent", above.into())],
        vec![("Parent", above.into())],
        vec![
            ("T", words("days")),
            ("V", vec![words("Monday"), words("Friday")].into()),
        ],
    ];
    let fields = fields.map(|more| Object::Reference(document.add_object(field(more))));
    let pages: Vec<_> = document.get_pages().into_values().collect();
    for page in pages {
        let page = document.get_dictionary_mut(page).expect("a page");
        page.set("Annots", fields.to_vec());
    }
    let mut file = Vec::new();
    document
        .save_to(&mut file)
        .expect("memory takes everything");
    let read = text(&workers(), "form.pdf", file).await.expect("read");
    let expected = [
        "Join us\n\nYour name: Ada\nLondon\nbees: many\ndays: Monday, Friday",
        "Thank you",
    ];
    assert_eq!(read.pages, expected);
}

#[tokio::test]
async fn every_slide_is_a_page() {
    let file = samples::pptx(&["Bees dance", "Wasps do not"]);
    let read = text(&workers(), "bees.pptx", file).await.expect("read");
    assert_eq!(read.format, Format::Slides);
    assert_eq!(read.pages, ["Bees dance", "Wasps do not"]);
    assert_eq!(read.title.as_deref(), Some("Slides of Bees"));
}

#[tokio::test]
async fn every_sheet_is_a_page_with_exact_cells() {
    let rows = "<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>hive</t></is></c>\
                <c r=\"B1\" t=\"inlineStr\"><is><t>founded</t></is></c><c r=\"D1\" t=\"b\"><v>1</v></c></row>\
                <row r=\"3\"><c r=\"A3\"><v>0.1</v></c><c r=\"B3\" s=\"1\"><v>46000</v></c></row>";
    let file = samples::xlsx(&[("Bees", rows), ("Empty", "")]);
    let read = text(&workers(), "bees.xlsx", file).await.expect("read");
    assert_eq!(read.format, Format::Sheets);
    assert_eq!(
        read.pages,
        ["# Bees\n\nhive | founded |  | true\n0.1 | 2025-12-09", ""]
    );
    assert_eq!(read.info["sheet_names"], json!(["Bees", "Empty"]));
}

#[tokio::test]
async fn a_lone_cell_in_the_last_corner_costs_nothing() {
    let rows =
        "<row r=\"1048576\"><c r=\"XFD1048576\" t=\"inlineStr\"><is><t>far</t></is></c></row>";
    let read = text(&workers(), "far.xlsx", samples::xlsx(&[("Far", rows)]))
        .await
        .expect("read");
    assert!(read.pages[0].ends_with("far"), "{:?}", read.pages);
}

#[tokio::test]
async fn the_parts_of_a_book_in_reading_order() {
    let file = samples::epub(&["<h1>One</h1><p>Bees.</p>", "<h1>Two</h1><p>Wasps.</p>"]);
    let read = text(&workers(), "bees.epub", file).await.expect("read");
    assert_eq!(read.format, Format::Book);
    assert_eq!(read.pages, ["# One\n\nBees.", "# Two\n\nWasps."]);
    assert_eq!(read.title.as_deref(), Some("Bees & Wasps"));
    assert_eq!(read.info["language"], "en");
}

#[tokio::test]
async fn a_mail_with_what_is_attached_to_it() {
    let read = text(&workers(), "a.eml", samples::email())
        .await
        .expect("read");
    assert_eq!(read.format, Format::Email);
    assert_eq!(read.title.as_deref(), Some("Bees & Wäsps"));
    assert_eq!(read.pages[0], "The hive is füll.");
    assert_eq!(read.pages[1], "# note.txt\n\nattached words");
    assert!(read.pages[2].ends_with("42"), "{:?}", read.pages);
    assert_eq!(read.info["from"], json!(["Ada Lovelace <ada@example.com>"]));
    assert_eq!(read.info["attachments"], json!(["note.txt", "count.xlsx"]));
    let unnamed = text(&workers(), "unnamed", samples::email())
        .await
        .expect("told by its headers");
    assert_eq!(unnamed.format, Format::Email);
}

#[tokio::test]
async fn every_mail_of_a_mailbox_is_there() {
    let mut mailbox = b"From ada@example.com Sat Nov 21 08:00:00 2026\n".to_vec();
    mailbox.extend(samples::email());
    mailbox.extend(
        b"\nFrom bob@example.com Sat Nov 21 09:00:00 2026\nFrom: bob@example.com\nTo: ada@example.com\n\
          Subject: Wasps\nDate: Sat, 21 Nov 2026 09:00:00 +0000\n\nThey sting.\n>From here to there.\n\n\
          From nobody Sat Nov 21 10:00:00 2026\n\n\n",
    );
    let read = text(&workers(), "a.mbox", mailbox).await.expect("read");
    assert_eq!(read.format, Format::Email);
    assert_eq!(read.title, None);
    assert_eq!(read.pages.len(), 4, "{:?}", read.pages);
    let first = "# Bees & Wäsps\n\nAda Lovelace <ada@example.com>";
    assert!(read.pages[0].starts_with(first), "{:?}", read.pages);
    assert!(
        read.pages[0].ends_with("The hive is füll."),
        "{:?}",
        read.pages
    );
    assert_eq!(read.pages[1], "# note.txt\n\nattached words");
    let last =
        "# Wasps\n\nbob@example.com\n2026-11-21T09:00:00Z\n\nThey sting.\nFrom here to there.";
    assert_eq!(read.pages[3], last);
    assert_eq!(read.info["mails"], 2);
    let unreadable = read.gaps.dropped.pages.get("unreadable").copied();
    assert_eq!(unreadable, Some(1), "the third has nothing in it");
}

#[tokio::test]
async fn archives_that_unpack_to_too_much_are_refused() {
    let workers = workers();
    let zeros = vec![b' '; 64 << 20];
    let bomb = samples::zip(&[
        ("word/document.xml", &zeros),
        ("a", &zeros),
        ("b", &zeros),
        ("c", &zeros),
        ("d", &zeros),
    ]);
    assert!(bomb.len() < 1 << 20, "a bomb is small");
    let error = text(&workers, "bomb.docx", bomb)
        .await
        .expect_err("too large");
    assert_eq!(error.kind, ErrorKind::Resource, "{error}");
    assert!(error.message.contains("more than 256 MiB"), "{error}");
    let plain = samples::zip(&[("a.txt", b"words")]);
    let error = text(&workers, "a.zip", plain)
        .await
        .expect_err("no document");
    assert!(
        error.message.contains("an archive, not a document"),
        "{error}"
    );
}

#[test]
fn types_are_told_by_the_bytes() {
    let mime = |bytes: &[u8]| super::super::decode::mime(&Claim::default(), bytes);
    assert!(mime(&samples::docx(&[&["x"]])).ends_with("wordprocessingml.document"));
    assert!(mime(&samples::pptx(&["x"])).ends_with("presentationml.presentation"));
    assert!(mime(&samples::xlsx(&[("x", "")])).ends_with("spreadsheetml.sheet"));
    assert_eq!(mime(&samples::epub(&["x"])), "application/epub+zip");
    assert_eq!(mime(&samples::email()), "message/rfc822");
    assert_eq!(mime(&samples::zip(&[("a", b"b")])), "application/zip");
}
