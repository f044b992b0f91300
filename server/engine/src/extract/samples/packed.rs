//! Documents that are archives, with as little in them as their format allows.

use std::fmt::Write as _;
use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const RELATIONS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const CONTENT: &str = "application/vnd.openxmlformats-officedocument";

pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let method = match *name {
            "mimetype" => CompressionMethod::Stored,
            _ => CompressionMethod::Deflated,
        };
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(*name, options).expect("a name");
        zip.write_all(bytes).expect("memory takes everything");
    }
    zip.finish().expect("whole").into_inner()
}

fn relations(targets: &[(&str, &str, &str)]) -> String {
    let mut xml = format!("<Relationships xmlns=\"{RELATIONS}\">");
    for (id, kind, target) in targets {
        let kind = if kind.starts_with("http") {
            (*kind).to_owned()
        } else {
            format!("{OFFICE}/{kind}")
        };
        write!(
            xml,
            "<Relationship Id=\"{id}\" Type=\"{kind}\" Target=\"{target}\"/>"
        )
        .expect("a text");
    }
    xml + "</Relationships>"
}

fn types(parts: &[(&str, String)]) -> String {
    let mut xml = String::from(
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/>",
    );
    for (part, kind) in parts {
        write!(
            xml,
            "<Override PartName=\"{part}\" ContentType=\"{kind}\"/>"
        )
        .expect("a text");
    }
    xml + "</Types>"
}

fn core(title: &str, author: &str) -> String {
    format!(
        "<cp:coreProperties xmlns:cp=\"http://schemas.openxmlformats.org/package/2006/metadata/core-properties\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>\
         </cp:coreProperties>"
    )
}

fn roots(main: &str) -> String {
    let core =
        "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties";
    relations(&[
        ("rId1", "officeDocument", main),
        ("rId2", core, "docProps/core.xml"),
    ])
}

/// Paragraphs on pages; the first one of each page is a heading.
pub fn docx(pages: &[&[&str]]) -> Vec<u8> {
    let mut body = String::new();
    for (number, page) in pages.iter().enumerate() {
        if number > 0 {
            body += "<w:p><w:r><w:br w:type=\"page\"/></w:r></w:p>";
        }
        for text in *page {
            write!(body, "<w:p><w:r><w:t>{text}</w:t></w:r></w:p>").expect("a text");
        }
    }
    body += "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell one</w:t></w:r></w:p></w:tc>\
             <w:tc><w:p><w:r><w:t>cell two</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";
    let document = format!(
        "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"><w:body>{body}</w:body>\
         </w:document>"
    );
    let kinds = [(
        "/word/document.xml",
        format!("{CONTENT}.wordprocessingml.document.main+xml"),
    )];
    zip(&[
        ("[Content_Types].xml", types(&kinds).as_bytes()),
        ("_rels/.rels", roots("word/document.xml").as_bytes()),
        ("docProps/core.xml", core("Of Bees", "Ada").as_bytes()),
        ("word/document.xml", document.as_bytes()),
    ])
}

pub fn pptx(slides: &[&str]) -> Vec<u8> {
    let spaces = format!(
        "xmlns:p=\"http://schemas.openxmlformats.org/presentationml/2006/main\" \
         xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" xmlns:r=\"{OFFICE}\""
    );
    let (mut list, mut kinds, mut targets, mut files) =
        (String::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, text) in slides.iter().enumerate() {
        let number = number + 1;
        write!(
            list,
            "<p:sldId id=\"{}\" r:id=\"rId{number}\"/>",
            255 + number
        )
        .expect("a text");
        targets.push((format!("rId{number}"), format!("slides/slide{number}.xml")));
        kinds.push((
            format!("/ppt/slides/slide{number}.xml"),
            format!("{CONTENT}.presentationml.slide+xml"),
        ));
        let slide = format!(
            "<p:sld {spaces}><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id=\"1\" name=\"\"/><p:cNvGrpSpPr/><p:nvPr/>\
             </p:nvGrpSpPr><p:grpSpPr/><p:sp><p:nvSpPr><p:cNvPr id=\"2\" name=\"t\"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr>\
             <p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree>\
             </p:cSld></p:sld>"
        );
        files.push((format!("ppt/slides/slide{number}.xml"), slide));
    }
    kinds.push((
        "/ppt/presentation.xml".to_owned(),
        format!("{CONTENT}.presentationml.presentation.main+xml"),
    ));
    let presentation =
        format!("<p:presentation {spaces}><p:sldIdLst>{list}</p:sldIdLst></p:presentation>");
    let kinds: Vec<(&str, String)> = kinds.iter().map(|(a, b)| (a.as_str(), b.clone())).collect();
    let targets: Vec<(&str, &str, &str)> = targets
        .iter()
        .map(|(id, target)| (id.as_str(), "slide", target.as_str()))
        .collect();
    let (types, relations, root) = (
        types(&kinds),
        relations(&targets),
        roots("ppt/presentation.xml"),
    );
    let core = core("Slides of Bees", "Ada");
    let mut all: Vec<(&str, &[u8])> = vec![
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", root.as_bytes()),
        ("docProps/core.xml", core.as_bytes()),
        ("ppt/presentation.xml", presentation.as_bytes()),
        ("ppt/_rels/presentation.xml.rels", relations.as_bytes()),
    ];
    all.extend(
        files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_bytes())),
    );
    zip(&all)
}

/// One sheet for each name, with the rows given as the XML of their cells.
pub fn xlsx(sheets: &[(&str, &str)]) -> Vec<u8> {
    let space = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";
    let (mut list, mut targets, mut kinds, mut files) =
        (String::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, (name, rows)) in sheets.iter().enumerate() {
        let number = number + 1;
        write!(
            list,
            "<sheet name=\"{name}\" sheetId=\"{number}\" r:id=\"rId{number}\"/>"
        )
        .expect("a text");
        targets.push((
            format!("rId{number}"),
            "worksheet",
            format!("worksheets/sheet{number}.xml"),
        ));
        kinds.push((
            format!("/xl/worksheets/sheet{number}.xml"),
            format!("{CONTENT}.spreadsheetml.worksheet+xml"),
        ));
        files.push((
            format!("xl/worksheets/sheet{number}.xml"),
            format!("<worksheet {space}><sheetData>{rows}</sheetData></worksheet>"),
        ));
    }
    targets.push(("rIdStyles".to_owned(), "styles", "styles.xml".to_owned()));
    // Style 1 shows a day.
    let styles = format!(
        "<styleSheet {space}><cellXfs count=\"2\"><xf numFmtId=\"0\"/><xf numFmtId=\"14\" applyNumberFormat=\"1\"/>\
         </cellXfs></styleSheet>"
    );
    let workbook =
        format!("<workbook {space} xmlns:r=\"{OFFICE}\"><sheets>{list}</sheets></workbook>");
    kinds.push((
        "/xl/workbook.xml".to_owned(),
        format!("{CONTENT}.spreadsheetml.sheet.main+xml"),
    ));
    let kinds: Vec<(&str, String)> = kinds.iter().map(|(a, b)| (a.as_str(), b.clone())).collect();
    let targets: Vec<(&str, &str, &str)> = targets
        .iter()
        .map(|(id, kind, target)| (id.as_str(), *kind, target.as_str()))
        .collect();
    let (types, relations, root) = (types(&kinds), relations(&targets), roots("xl/workbook.xml"));
    let mut all: Vec<(&str, &[u8])> = vec![
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", root.as_bytes()),
        ("xl/workbook.xml", workbook.as_bytes()),
        ("xl/_rels/workbook.xml.rels", relations.as_bytes()),
        ("xl/styles.xml", styles.as_bytes()),
    ];
    all.extend(
        files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_bytes())),
    );
    zip(&all)
}

pub fn epub(chapters: &[&str]) -> Vec<u8> {
    let container = "<container xmlns=\"urn:oasis:names:tc:opendocument:xmlns:container\"><rootfiles>\
                     <rootfile full-path=\"OEBPS/book.opf\" media-type=\"application/oebps-package+xml\"/></rootfiles>\
                     </container>";
    let (mut items, mut order, mut files) = (String::new(), String::new(), Vec::new());
    // The manifest lists them backwards: only the spine tells the order.
    for (number, text) in chapters.iter().enumerate().rev() {
        write!(items, "<item id=\"c{number}\" href=\"text/part%20{number}.xhtml\" media-type=\"application/xhtml+xml\"/>")
            .expect("a text");
        files.push((
            format!("OEBPS/text/part {number}.xhtml"),
            format!("<html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>x</title></head><body>{text}</body></html>"),
        ));
    }
    for number in 0..chapters.len() {
        write!(order, "<itemref idref=\"c{number}\"/>").expect("a text");
    }
    let package = format!(
        "<package xmlns=\"http://www.idpf.org/2007/opf\"><metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
         <dc:title>Bees &amp; Wasps</dc:title><dc:creator>Ada</dc:creator><dc:language>en</dc:language></metadata>\
         <manifest>{items}</manifest><spine>{order}</spine></package>"
    );
    let mut all: Vec<(&str, &[u8])> = vec![
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", container.as_bytes()),
        ("OEBPS/book.opf", package.as_bytes()),
    ];
    all.extend(
        files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_bytes())),
    );
    zip(&all)
}

/// A mail in two forms, with a text and a workbook attached.
pub fn email() -> Vec<u8> {
    use base64::Engine as _;

    let workbook = xlsx(&[("Bees", "<row r=\"1\"><c r=\"A1\"><v>42</v></c></row>")]);
    let workbook = base64::engine::general_purpose::STANDARD.encode(workbook);
    format!(
        "From: Ada Lovelace <ada@example.com>\r\nTo: bob@example.com, Carol <carol@example.com>\r\n\
         Subject: =?utf-8?q?Bees_=26_W=C3=A4sps?=\r\nDate: Fri, 20 Nov 2026 10:00:00 +0100\r\n\
         Message-ID: <one@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"b\"\r\n\r\n\
         --b\r\nContent-Type: multipart/alternative; boundary=\"a\"\r\n\r\n\
         --a\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
         The hive is f=C3=BCll.\r\n\
         --a\r\nContent-Type: text/html\r\n\r\n<p>The hive is <b>full</b>.</p>\r\n--a--\r\n\
         --b\r\nContent-Type: text/plain; name=\"note.txt\"\r\n\
         Content-Disposition: attachment; filename=\"note.txt\"\r\n\r\nattached words\r\n\
         --b\r\nContent-Type: application/vnd.openxmlformats-officedocument.spreadsheetml.sheet\r\n\
         Content-Disposition: attachment; filename=\"count.xlsx\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
         {workbook}\r\n--b--\r\n"
    )
    .into_bytes()
}
