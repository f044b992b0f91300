//! Files that are never in memory as a whole: read from the disk, line by line and picture by picture.

use std::io::Write;
use std::process::Command;

use super::*;
use crate::embed::{ImageFeatures, Pixels};
use crate::extract::{Folder, registry::IMAGE_OUTPUT, tools::Tools};

/// Sees the same in every picture, and counts the pictures of each call.
#[derive(Clone)]
pub(super) struct Seeing {
    dims: usize,
    away: bool,
    calls: Arc<Mutex<Vec<usize>>>,
}

impl Seeing {
    pub(super) fn of(plan: &CollectionPlan) -> Self {
        let mut indexes = plan.params.indexes().iter();
        let pictures = indexes.find(|index| index.output == IMAGE_OUTPUT).unwrap();
        Self {
            dims: pictures.dims,
            away: false,
            calls: Arc::default(),
        }
    }
}

#[async_trait]
impl Encoders for Seeing {
    async fn text(&self, _: &str) -> EmbedResult<Arc<dyn TextEncoder>> {
        Ok(Arc::new(Moody::default()))
    }
    async fn image(&self, _: &str) -> EmbedResult<Arc<dyn ImageEncoder>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl ImageEncoder for Seeing {
    fn output(&self) -> &str {
        IMAGE_OUTPUT
    }
    fn dims(&self) -> usize {
        self.dims
    }
    async fn embed(&self, pictures: Vec<Pixels>) -> EmbedResult<Vec<ImageFeatures>> {
        self.calls.lock().unwrap().push(pictures.len());
        if self.away {
            return Err(EmbedError::Failed("nobody answers".into()));
        }
        let features = ImageFeatures {
            vector: vec![0.5; self.dims],
            labels: vec![("barn".to_owned(), 0.9)],
        };
        Ok(vec![features; pictures.len()])
    }
}

/// A film of so many seconds, on the disk.
async fn film(seconds: usize) -> Data {
    let folder = Folder::new().unwrap();
    let picture = format!("testsrc=s=64x48:r=4:d={seconds}");
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", &picture])
        .args("-pix_fmt yuv420p -c:v libx264 -g 4 -y".split(' '))
        .arg(folder.path().join("film.mp4"))
        .status()
        .unwrap();
    assert!(made.success(), "the tests need ffmpeg");
    Data::on_disk(&folder, "film.mp4").await.unwrap()
}

async fn watched(
    model: &Seeing,
    plan: &CollectionPlan,
    film: Data,
) -> Result<Vec<ObjectOutcome>, IngestError> {
    let ingest = Ingest {
        extraction: Extraction::in_process().with_tools(Tools::find()),
        encoders: Arc::new(model.clone()),
        web: None,
    };
    let mut one = object(0, json!({}));
    one.blobs = vec![file("film.mp4", "video", "video/mp4", film)];
    ingest.run(plan, vec![one], NOW, Try::More).await
}

#[tokio::test]
async fn pictures_of_a_film_are_embedded_in_groups_while_it_is_read() {
    let parameters = json!({"time_split_interval": 1, "enable_thumbnails": false});
    let plan = plan("multimodal_extractor", json!({ "parameters": parameters }));
    let model = Seeing::of(&plan);
    let mut outcomes = watched(&model, &plan, film(36).await).await.unwrap();
    assert_eq!(*model.calls.lock().unwrap(), [32, 4]);
    let made = outcomes.remove(0).documents.unwrap();
    assert_eq!(made.len(), 36);
    for one in &made {
        let mut lengths: Vec<usize> = one.vectors.values().map(Vec::len).collect();
        lengths.sort_unstable();
        assert_eq!(lengths, [DIMS, model.dims], "{:?}", one.payload);
        assert_eq!(one.payload["labels"], json!(["barn"]));
        assert_eq!(one.payload["_internal"]["mime_type"], "video/mp4");
    }
}

#[tokio::test]
async fn a_model_that_is_away_while_a_film_is_read_costs_the_chunk_one_try() {
    let plan = plan("multimodal_extractor", json!({}));
    let model = Seeing {
        away: true,
        ..Seeing::of(&plan)
    };
    let error = watched(&model, &plan, film(2).await).await.unwrap_err();
    assert!(matches!(error, IngestError::Model(EmbedError::Failed(_))));
    assert_eq!(*model.calls.lock().unwrap(), [1]);
}

/// A collection of rows, and an object whose file of rows is on the disk.
async fn of_rows(write: impl FnOnce(&mut std::fs::File)) -> (CollectionPlan, ObjectInput) {
    let parameters = json!({"row_format": "jsonl"});
    let plan = plan("passthrough_extractor", json!({ "parameters": parameters }));
    let folder = Folder::new().unwrap();
    write(&mut std::fs::File::create(folder.path().join("rows")).unwrap());
    let rows = Data::on_disk(&folder, "rows").await.unwrap();
    let mut one = object(0, json!({}));
    one.blobs = vec![file("a.jsonl", "text", "application/x-ndjson", rows)];
    (plan, one)
}

#[tokio::test]
async fn rows_are_read_line_by_line() {
    let words = "word ".repeat(1_000);
    let (plan, one) = of_rows(|file| {
        for number in 0..2_000 {
            writeln!(file, "{{\"number\": {number}, \"words\": \"{words}\"}}").unwrap();
        }
    })
    .await;
    let size = one.blobs[0].bytes.len();
    assert!(size > 10_000_000, "{size}");
    let made = documents(&plan, one).await.unwrap();
    assert_eq!(made.len(), 2_000);
    assert_eq!(made[1_999].payload["number"], 1_999);
    assert_eq!(made[1_999].payload["row_index"], 1_999);
    assert_eq!(made[0].payload["_internal"]["size_bytes"], size);
}

#[tokio::test]
async fn a_line_without_an_end_is_refused_before_it_is_in_memory() {
    let (plan, one) = of_rows(|file| {
        writeln!(file, "{{\"number\": 1}}\n{{\"number\": 2}}").unwrap();
        // A hole: as large as an upload may be, and nothing on the disk.
        file.set_len(500 << 20).unwrap();
    })
    .await;
    let failure = documents(&plan, one).await.unwrap_err();
    let reason = "line 3 of the file has more than 4 MiB, which is the limit";
    assert_eq!(
        (failure.error.as_str(), failure.error_type),
        (reason, "resource")
    );
}

/// How many documents are in each slice, and their ids.
async fn walked(sliced: &Sliced) -> Result<(Vec<usize>, Vec<String>), Failure> {
    let (mut walk, mut lengths, mut ids) = (sliced.walk(), Vec::new(), Vec::new());
    while let Some(slice) = walk.slice().await? {
        lengths.push(slice.documents.len());
        ids.extend(slice.documents.into_iter().map(|one| one.document_id));
    }
    Ok((lengths, ids))
}

async fn sliced(plan: &CollectionPlan, one: ObjectInput) -> Sliced {
    let outcomes = run(&Moody::default(), plan, vec![one], Try::More).await;
    let outcome = outcomes.unwrap().remove(0);
    assert_eq!(outcome.documents.map(|made| made.len()), Ok(0));
    outcome.sliced.expect("more than is held at once")
}

#[tokio::test]
async fn many_rows_come_in_slices_that_are_the_same_each_time() {
    let (plan, one) = of_rows(|file| {
        let rows: String = (0..1_300).map(|at| format!("{{\"n\": {at}}}\n")).collect();
        file.write_all(rows.as_bytes()).unwrap();
    })
    .await;
    let many = sliced(&plan, one).await;
    let (lengths, ids) = walked(&many).await.unwrap();
    assert_eq!(lengths, [512, 512, 276]);
    let different: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), 1_300);
    assert_eq!(walked(&many).await.unwrap(), (lengths, ids.clone()));
    // A walk that nobody goes on with ends.
    let mut begun = many.walk();
    let first = begun.slice().await.unwrap().unwrap().documents;
    assert_eq!(first[0].document_id, ids[0]);
    // Large rows come in smaller slices.
    let words = "w".repeat(3 << 20);
    let (plan, one) = of_rows(|file| {
        for number in 0..5 {
            writeln!(file, "{{\"n\": {number}, \"words\": \"{words}\"}}").unwrap();
        }
    })
    .await;
    let (lengths, _) = walked(&sliced(&plan, one).await).await.unwrap();
    assert_eq!(lengths, [2, 2, 1]);
}

#[tokio::test]
async fn a_row_that_is_broken_behind_many_is_told_as_its_slice_is_made() {
    let (plan, one) = of_rows(|file| {
        file.write_all("{\"n\": 1}\n".repeat(700).as_bytes())
            .unwrap();
        writeln!(file, "no row").unwrap();
    })
    .await;
    let many = sliced(&plan, one).await;
    let failure = walked(&many).await.unwrap_err();
    assert_eq!(failure.error_type, "permanent");
    let start = "line 701 of the file is not a JSON object";
    assert!(failure.error.starts_with(start), "{}", failure.error);
}

#[tokio::test]
async fn a_long_text_has_its_vectors_before_its_documents_are_made() {
    let parameters = json!({"split_by": "words", "chunk_size": 4, "chunk_overlap": 0});
    let plan = plan("text_extractor", json!({ "parameters": parameters }));
    let text = "the barn is red ".repeat(1_200);
    let many = sliced(&plan, object(0, json!({ "text": text }))).await;
    let mut walk = many.walk();
    let mut count = 0;
    while let Some(slice) = walk.slice().await.unwrap() {
        assert!(slice.documents.len() <= 512);
        for one in &slice.documents {
            assert_eq!(one.vectors.len(), 1, "{:?}", one.payload);
            assert_eq!(one.payload["text"], "the barn is red");
        }
        count += slice.documents.len();
    }
    assert_eq!(count, 1_200);
}
