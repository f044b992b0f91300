//! What the pages ask of the server.

use indexmap::IndexMap;
use loupe_wire::{DisplayConfig, Object, RetrieverInputSchemaField, Timestamp, Value};

/// A published retriever, as the pages need it.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Name in the address, `/r/{public_name}`.
    pub public_name: String,
    /// How the page looks and which fields it shows.
    pub display_config: DisplayConfig,
    /// Inputs the retriever accepts.
    pub input_schema: IndexMap<String, RetrieverInputSchemaField>,
    /// Whether a password opened it: then no search engine, cache or preview keeps it.
    pub is_protected: bool,
    /// Whether the retriever answers without any input: then the landing view shows a first page of results.
    pub allows_empty_query: bool,
    /// Most results of one search, where the owner limits them: no page of results is longer.
    pub most_results: Option<u32>,
    /// Last change of the publication.
    pub updated_at: Timestamp,
    /// Names of the collections searched.
    pub collections: Vec<String>,
}

/// Who looks at a page.
#[derive(Debug, Clone, Default)]
pub struct Visitor {
    /// The `Cookie` header.
    pub cookies: String,
    /// Asks not to be followed (`DNT`, `Sec-GPC`): nothing is told of what such a visitor does.
    pub unfollowed: bool,
    /// Where the stages of a search are told, for a visitor who watches them.
    pub steps: Option<tokio::sync::mpsc::Sender<Step>>,
}

/// A stage of a search that began or ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Which one, from 1.
    pub at: usize,
    /// Of how many.
    pub of: usize,
    /// Documents that it left, once it ended.
    pub found: Option<i64>,
    /// Milliseconds that it took, once it ended.
    pub ms: Option<i64>,
}

/// A publication as a visitor finds it.
#[derive(Debug, Clone)]
pub enum Seen {
    /// Open for this visitor.
    Page(Box<Page>),
    /// A password opens it.
    Locked,
    /// There is nothing, or nothing for strangers: both are the same.
    Nothing,
}

/// What a password came to.
#[derive(Debug, Clone)]
pub enum Unlock {
    /// The text of the `Set-Cookie` that opens the page.
    Cookie(String),
    /// The page needs none.
    Open,
    /// It is another one.
    Wrong,
    /// There is no such page.
    Nothing,
}

/// One search of a visitor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchRequest {
    /// Values by input name, typed as the input schema says. Only declared inputs are ever present.
    pub inputs: Object,
    /// Filter tree over exposed fields, made from the facets the visitor chose.
    pub filters: Option<Value>,
    /// Page number, from 1.
    pub page: u32,
    /// Documents a page.
    pub page_size: u32,
    /// Fields to count values of.
    pub facets: Vec<String>,
    /// Looks up what stands beside an item: the page asks, not its visitor, and nothing counts it as a search.
    pub is_beside: bool,
}

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct SearchAnswer {
    /// Documents of the page asked for, best first.
    pub documents: Vec<Hit>,
    /// Documents found over all pages.
    pub total: u64,
    /// Counts of the fields asked for.
    pub facets: Vec<Facet>,
    /// Warnings of the retriever. Written for its owner: the pages log them and never show them.
    pub warnings: Vec<String>,
    /// Milliseconds the search took.
    pub took_ms: u64,
    /// Names the search in what is told of its results.
    pub execution_id: String,
    /// Whether something did not answer, or not in time: there may be more.
    pub is_partial: bool,
    /// What a language model wrote of the documents, where the retriever has it written; those rows are no documents.
    pub written: Vec<Written>,
}

/// A text that a language model wrote of documents.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Markdown, by nobody who is trusted.
    pub text: String,
    /// What the documents of it share, where there is a text of each group.
    pub group: Option<String>,
    /// Ids of the documents that it was made of, where that is told.
    pub sources: Vec<String>,
}

impl SearchAnswer {
    /// Whether nothing was found before the time was over, which is no empty result.
    pub fn is_nothing_yet(&self) -> bool {
        self.is_partial && self.documents.is_empty() && self.written.is_empty()
    }
}

/// One document, cut down to what strangers may see.
#[derive(Debug, Clone, Default)]
pub struct Hit {
    /// Id of the document.
    pub document_id: String,
    /// Score of the search, absent on an item's own page.
    pub score: Option<f64>,
    /// The exposed fields; the pages cut away every other once more.
    pub fields: Object,
    /// Small picture of the document.
    pub thumbnail: Option<Picture>,
    /// The file it was made of, on an item's own page.
    pub media: Option<Media>,
    /// Address of the picture it was made of, as large as it is; among results only where that is another than the small one.
    pub original: Option<String>,
}

/// The file that a document was made of, and the place in it.
#[derive(Debug, Clone, Default)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// Address: https, http, or a path on this origin.
    pub url: String,
    /// Second of a recording.
    pub start: Option<f64>,
    /// Second at which the document ends, of a recording.
    pub end: Option<f64>,
    /// Page of a PDF, from 1.
    pub page: Option<u64>,
    /// The documents that were made of the same file, each with its place: this one too. In no order.
    pub parts: Vec<Hit>,
}

/// What visitors do with a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MediaKind {
    /// Watched.
    #[default]
    Video,
    /// Listened to.
    Audio,
    /// Read, in the browser's own viewer.
    Pdf,
}

/// A picture with its size when known, so that the page does not move when it arrives.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// Address: https, http, or a path on this origin.
    pub url: String,
    /// Width in pixels.
    pub width: Option<u32>,
    /// Height in pixels.
    pub height: Option<u32>,
}

/// Values of one field and how many documents have each.
#[derive(Debug, Clone, Default)]
pub struct Facet {
    /// Field name.
    pub field: String,
    /// Most frequent first.
    pub values: Vec<FacetValue>,
}

/// One value of a facet.
#[derive(Debug, Clone, Default)]
pub struct FacetValue {
    /// The value.
    pub value: Value,
    /// Documents that have it.
    pub count: u64,
}

/// A page in the sitemap.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Name in the address.
    pub public_name: String,
    /// Last change.
    pub updated_at: Timestamp,
}

/// Why the server could not answer. The texts are for the log; visitors read the page's own sentences.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The visitor's inputs or filters do not fit the retriever.
    #[error("the retriever refused the inputs: {0}")]
    Invalid(String),
    /// Too many requests.
    #[error("rate limit reached, retry after {retry_after_s} s")]
    Busy {
        /// Seconds to wait.
        retry_after_s: u64,
    },
    /// The search ran out of time.
    #[error("the search ran out of time")]
    Timeout,
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// What the pages ask of the server. Every method is asked at most a few times a request.
#[async_trait::async_trait]
pub trait Host: Send + Sync + 'static {
    /// Origin of the public address, such as `https://search.example.com`, without a slash at the end.
    fn base_url(&self) -> String;

    /// The server's clock, for "3 days ago".
    fn now(&self) -> Timestamp;

    /// Address of a built asset by its logical name, such as `public.css`; none when it was not built.
    fn asset(&self, logical_name: &str) -> Option<String>;

    /// The publication of this name, as this visitor finds it. Under a name that it had before, it has the one of now: the
    /// pages lead there.
    async fn page(&self, public_name: &str, visitor: &Visitor) -> Result<Seen, HostError>;

    /// Tries the password of a page.
    async fn unlock(&self, public_name: &str, password: &str) -> Result<Unlock, HostError>;

    /// Runs the retriever of a page that is open for this visitor.
    async fn search(
        &self,
        public_name: &str,
        visitor: &Visitor,
        request: SearchRequest,
    ) -> Result<SearchAnswer, HostError>;

    /// One document of the publication's collections, exposed fields only.
    async fn item(
        &self,
        public_name: &str,
        visitor: &Visitor,
        document_id: &str,
    ) -> Result<Option<Hit>, HostError>;

    /// Documents of the publication's collections by their ids, in no order, as far as they are there: what a page says of
    /// its own beside a search. None of them is a search.
    async fn named(
        &self,
        public_name: &str,
        visitor: &Visitor,
        document_ids: &[String],
    ) -> Result<Vec<Hit>, HostError>;

    /// Active publications without a password, for the sitemap.
    async fn listed(&self) -> Result<Vec<Listed>, HostError>;
}
