//! The picture that a link to a page is shown with where links are shared: its title, its description and its colours.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use loupe_wire::DisplayConfig;
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::canvas::{Area, Canvas, Rgb, Style, writable};
use super::query::encode;
use super::theme::colors;
use super::{Shared, closed, open, reply};
use crate::{Page, Visitor};

pub const WIDTH: u32 = 1200;
pub const HEIGHT: u32 = 630;

/// Changes with what is drawn beside the page's own words and colours.
const EDITION: &str = "1";

/// Bytes of pictures that are kept, and how many are drawn at once.
const ROOM: u64 = 16 << 20;
const AT_ONCE: usize = 2;

const LEFT: f32 = 88.0;
const INNER: f32 = 1024.0;

type Key = [u8; 32];

static DRAWN: LazyLock<Cache<Key, Bytes>> = LazyLock::new(|| {
    Cache::builder()
        .max_capacity(ROOM)
        .weigher(|_: &Key, picture: &Bytes| u32::try_from(picture.len()).unwrap_or(u32::MAX))
        .build()
});
static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// What a picture says.
struct Card {
    /// None in letters that the font lacks.
    title: Option<String>,
    description: Option<String>,
    host: String,
    colors: Vec<(&'static str, Rgb)>,
}

/// The address of a page's picture. It changes with the picture: whoever keeps pictures of links sees the new one.
pub fn address(page: &Page, base_url: &str) -> String {
    address_of(&page.display_config, &page.public_name, base_url)
}

/// The same, of what a page is made of.
pub fn address_of(display: &DisplayConfig, public_name: &str, base_url: &str) -> String {
    let key = hex::encode(Card::of(display, base_url).key());
    let name = encode(public_name);
    format!("{base_url}/r/{name}/preview.png?v={}", &key[..12])
}

pub async fn picture(
    State(host): Shared,
    Path(public_name): Path<String>,
    visitor: Visitor,
    to: Uri,
    headers: HeaderMap,
) -> Response {
    let page = match open(&*host, &public_name, &visitor, &to).await {
        Ok(page) => page,
        Err(reply) => return closed(*reply),
    };
    let card = Card::of(&page.display_config, &host.base_url());
    match drawn(card).await {
        Some(bytes) => reply::file("image/png", bytes.to_vec(), page.is_protected, &headers),
        None => reply::unavailable(),
    }
}

/// The picture, drawn aside where nobody asked for it before.
async fn drawn(card: Card) -> Option<Bytes> {
    let key = card.key();
    if let Some(bytes) = DRAWN.get(&key) {
        return Some(bytes);
    }
    let turn = TURNS.acquire().await.ok()?;
    // Whoever had the turn before may have drawn the same.
    if let Some(bytes) = DRAWN.get(&key) {
        return Some(bytes);
    }
    // Whoever asked may be gone before it is drawn: it is kept all the same, and has its turn until then.
    let drawing = move || {
        let _turn = turn;
        let bytes = Bytes::from(card.draw().png().map_err(|error| error.to_string())?);
        DRAWN.insert(key, bytes.clone());
        Ok::<_, String>(bytes)
    };
    let drawing = tokio::task::spawn_blocking(drawing).await;
    match drawing.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            tracing::error!(error, "a picture of a page could not be drawn");
            None
        }
    }
}

impl Card {
    fn of(display: &DisplayConfig, base_url: &str) -> Self {
        let host = base_url
            .split_once("://")
            .map_or(base_url, |(_, host)| host);
        Self {
            title: writable(&display.title),
            description: display.description.as_deref().and_then(writable),
            host: host.to_owned(),
            colors: colors(display),
        }
    }

    fn key(&self) -> Key {
        let mut hash = Sha256::new();
        let said = |text: &Option<String>| text.clone().unwrap_or_default();
        let (title, description) = (said(&self.title), said(&self.description));
        for text in [EDITION, &title, &description, &self.host] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        for (name, color) in &self.colors {
            hash.update(name);
            hash.update(color);
        }
        hash.finalize().into()
    }

    fn color(&self, token: &str) -> Rgb {
        let found = self.colors.iter().find(|(name, _)| *name == token);
        found.map_or([0; 3], |(_, color)| *color)
    }

    fn draw(&self) -> Canvas {
        let primary = self.color("primary");
        let mut canvas = Canvas::new(WIDTH, HEIGHT, self.color("bg"));
        canvas.rounded(Area(0.0, -12.0, WIDTH as f32, 24.0), 0.0, primary);
        let mark = Area(LEFT, 72.0, 44.0, 44.0);
        canvas.rounded(mark, 12.0, primary);
        canvas.glass(mark, self.color("on-primary"));
        let small = self.style(false, 28.0, "muted");
        let host = small.wrap(&self.host, INNER - 62.0, 1).concat();
        canvas.text(&host, &small, LEFT + 62.0, 104.0);
        self.words(&mut canvas);
        self.field(&mut canvas);
        canvas
    }

    fn style(&self, is_strong: bool, size: f32, token: &str) -> Style {
        Style {
            is_strong,
            size,
            color: self.color(token),
        }
    }

    /// Title and description, in the middle between the mark and the field.
    fn words(&self, canvas: &mut Canvas) {
        let title = |size| self.style(true, size, "text");
        let words = self.title.as_deref().unwrap_or_default();
        // As large as two lines let it be.
        let size = [88.0, 72.0]
            .into_iter()
            .find(|size| title(*size).wrap(words, INNER, 3).len() <= 2);
        let (size, most) = size.map_or((60.0, 3), |size| (size, 2));
        let heading = title(size).wrap(words, INNER, most);
        let muted = self.style(false, 34.0, "muted");
        let description = self.description.as_deref();
        let text = description.map_or_else(Vec::new, |text| muted.wrap(text, INNER, 2));
        let (row, line, gap) = (size * 1.1, 47.0, 24.0);
        let mut whole = heading.len() as f32 * row;
        let gap = if heading.is_empty() { 0.0 } else { gap };
        if !text.is_empty() {
            whole += gap + text.len() as f32 * line;
        }
        let mut top = 132.0 + (314.0 - whole) / 2.0;
        for words in &heading {
            canvas.text(words, &title(size), LEFT, top + size * 0.9);
            top += row;
        }
        top += gap;
        for words in &text {
            canvas.text(words, &muted, LEFT, top + 34.0);
            top += line;
        }
    }

    /// The field that waits for a search, and its button.
    fn field(&self, canvas: &mut Canvas) {
        canvas.rounded(
            Area(LEFT, 474.0, INNER, 84.0),
            16.0,
            self.color("line-strong"),
        );
        canvas.rounded(
            Area(LEFT + 2.0, 476.0, INNER - 4.0, 80.0),
            14.0,
            self.color("surface"),
        );
        let button = Area(LEFT + INNER - 190.0, 484.0, 180.0, 64.0);
        canvas.rounded(button, 10.0, self.color("primary"));
        let label = self.style(true, 28.0, "on-primary");
        let left = button.0 + (button.2 - label.width("Search")) / 2.0;
        canvas.text("Search", &label, left, 526.0);
    }
}
