//! Sounds and films in segments, through ffmpeg: what they are, where they are cut, their key frames and their sound.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use loupe_wire::reading;

use super::decode::recording::{Recording, recording};
use super::probe::Probe;
pub use super::probe::{Facts, Video};
use super::tools::{Limits, Tool};
use super::{Data, ExtractError, Extraction, Folder, Result};

/// Segments of one file.
pub const MAX_SEGMENTS: usize = 2_000;
/// Longer recordings are refused.
const MAX_SECONDS: f64 = 12.0 * 3600.0;
/// Shorter pieces are joined to their neighbour: a flash is no scene.
const SHORTEST: f64 = 0.5;
/// Seconds of sound that one transcription gets: 19 MB as WAV, below what endpoints take.
pub const SOUND_SECONDS: u32 = 600;
const MEMORY: u64 = 3 << 30;

const PROBE: Limits = limits(60, 30, 64 << 20);
const FRAME: Limits = limits(120, 60, 64 << 20);
const SCAN: Limits = limits(3600, 3600, 64 << 20);
const SOUND: Limits = limits(1800, 900, 64 << 20);
const CONVERT: Limits = limits(4 * 3600, 8 * 3600, 4 << 30);

const fn limits(wall: u64, cpu_seconds: u64, file_bytes: u64) -> Limits {
    Limits {
        wall: Duration::from_secs(wall),
        cpu_seconds,
        memory_bytes: MEMORY,
        file_bytes,
    }
}

/// Where a recording is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    /// Every so many seconds.
    Time(f64),
    /// Where pictures change by more than this share, from 0 to 1; no piece longer than so many seconds.
    Scene(f64, f64),
    /// Where it is quieter than this, in decibels; no piece longer than so many seconds.
    Silence(f64, f64),
}

/// One piece of a recording, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    pub start: f64,
    pub end: f64,
}

/// A recording on the disk while it is worked on; gone with its last use.
pub struct Workshop<'a> {
    extraction: &'a Extraction,
    folder: Folder,
    /// What the folder's input may be a link to.
    _input: Data,
    kind: Recording,
    pub facts: Facts,
}

impl<'a> Workshop<'a> {
    /// Puts the file where programs find it and asks what it is.
    ///
    /// # Errors
    /// It is no recording, or none that can be read.
    pub async fn open(extraction: &'a Extraction, input: &Data) -> Result<Self> {
        let kind = recording(input.sample())
            .ok_or_else(|| ExtractError::permanent("the file is no sound or film that is known"))?;
        let folder = folder()?;
        input.put(&folder.path().join("input")).await?;
        let mut workshop = Self {
            extraction,
            folder,
            _input: input.clone(),
            kind,
            facts: Facts::default(),
        };
        workshop.facts = workshop.probe().await?;
        Ok(workshop)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The arguments before those of a task: the input's kind is told, other protocols and playlists are shut out.
    fn input(&self, seek: Option<f64>) -> Vec<String> {
        let mut arguments =
            words("-nostdin -hide_banner -v error -threads 2 -protocol_whitelist file,pipe");
        arguments.extend(["-f".to_owned(), self.kind.reader.to_owned()]);
        if let Some(seek) = seek {
            arguments.extend(["-ss".to_owned(), format!("{seek:.3}")]);
        }
        arguments.extend(words("-i file:input"));
        arguments
    }

    async fn ffmpeg(
        &self,
        seek: Option<f64>,
        task: Vec<String>,
        limits: Limits,
        what: &str,
    ) -> Result<()> {
        let mut arguments = self.input(seek);
        arguments.extend(task);
        let folder = self.folder.path();
        self.extraction
            .run(Tool::Ffmpeg, arguments, folder, limits, what)
            .await
    }

    async fn probe(&self) -> Result<Facts> {
        let mut arguments = words("-v error -protocol_whitelist file,pipe -f");
        arguments.push(self.kind.reader.to_owned());
        arguments.extend(words(
            "-print_format json -show_format -show_streams -o probe.json file:input",
        ));
        let what = "reading the recording";
        let folder = self.folder.path();
        self.extraction
            .run(Tool::Ffprobe, arguments, folder, PROBE, what)
            .await?;
        let told = read(&self.path("probe.json")).await?;
        let told: Probe = reading::from_slice(&told).map_err(|_| {
            ExtractError::permanent("the recording is broken: nothing is known of it")
        })?;
        let mut facts = told.facts();
        if facts.video.is_none() && facts.audio.is_none() {
            return Err(ExtractError::permanent(
                "the recording holds neither sound nor pictures",
            ));
        }
        if facts.seconds <= 0.0 {
            facts.seconds = self.measure().await?;
        }
        if facts.seconds > MAX_SECONDS {
            return Err(ExtractError::resource(format!(
                "the recording is {:.1} hours long; the limit is {} hours",
                facts.seconds / 3600.0,
                MAX_SECONDS / 3600.0
            )));
        }
        Ok(facts)
    }

    /// How long a recording is that does not tell: it is played to its end.
    async fn measure(&self) -> Result<f64> {
        let task = words("-progress progress.txt -f null -");
        self.ffmpeg(None, task, SCAN, "measuring the recording")
            .await?;
        let progress = read_text(&self.path("progress.txt")).await?;
        let last = progress
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("out_time_us="));
        let micros: f64 = last
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0.0);
        if micros <= 0.0 {
            return Err(ExtractError::permanent(
                "the recording is broken: it has no length",
            ));
        }
        Ok(micros / 1e6)
    }

    /// Where the recording is cut.
    pub async fn segments(&self, cut: Cut) -> Result<Vec<Segment>> {
        let seconds = self.facts.seconds;
        let (marks, longest) = match cut {
            Cut::Time(every) => (Vec::new(), every),
            Cut::Scene(_, longest) if self.facts.video.is_none() => (Vec::new(), longest),
            Cut::Silence(_, longest) if self.facts.audio.is_none() => (Vec::new(), longest),
            Cut::Scene(threshold, longest) => (self.scenes(threshold).await?, longest),
            Cut::Silence(decibels, longest) => (self.silences(decibels).await?, longest),
        };
        let segments = cut_at(&marks, seconds, longest);
        if segments.len() > MAX_SEGMENTS {
            return Err(ExtractError::resource(format!(
                "the recording would be cut into {} segments; the limit is {MAX_SEGMENTS}: make them longer",
                segments.len()
            )));
        }
        Ok(segments)
    }

    async fn scenes(&self, threshold: f64) -> Result<Vec<f64>> {
        let filter = format!(
            "scale=320:-2,select='gt(scene,{threshold:.3})',metadata=print:file=scenes.txt"
        );
        let mut task = vec!["-an".to_owned(), "-vf".to_owned(), filter];
        task.extend(words("-f null -"));
        self.ffmpeg(None, task, SCAN, "looking for scenes").await?;
        let told = read_text(&self.path("scenes.txt")).await?;
        Ok(numbers(&told, "pts_time:"))
    }

    /// The middles of the silences.
    async fn silences(&self, decibels: f64) -> Result<Vec<f64>> {
        let filter =
            format!("silencedetect=n={decibels:.0}dB:d=0.4,ametadata=print:file=silences.txt");
        let mut task = vec!["-vn".to_owned(), "-af".to_owned(), filter];
        task.extend(words("-f null -"));
        self.ffmpeg(None, task, SCAN, "looking for silences")
            .await?;
        let told = read_text(&self.path("silences.txt")).await?;
        let starts = numbers(&told, "lavfi.silence_start=");
        let ends = numbers(&told, "lavfi.silence_end=");
        let pairs = starts.iter().zip(&ends);
        Ok(pairs
            .map(|(start, end)| f64::midpoint(*start, *end))
            .collect())
    }

    /// The picture in the middle of a segment, as JPEG. Absent where the film has none there.
    pub async fn frame(&self, segment: Segment) -> Result<Option<Bytes>> {
        let at = f64::midpoint(segment.start, segment.end);
        let path = self.path("frame.jpg");
        for (from, filter) in looks(self.kind.reader, at) {
            let mut task = vec!["-an".to_owned(), "-vf".to_owned(), filter];
            task.extend(words("-frames:v 1 -q:v 3 -update 1 -y frame.jpg"));
            self.ffmpeg(Some(from), task, FRAME, "taking a picture from the film")
                .await?;
            if tokio::fs::try_exists(&path).await.unwrap_or(false) {
                let bytes = read(&path).await?;
                // The next one shall not be mistaken for this.
                tokio::fs::remove_file(&path).await.map_err(disk)?;
                return Ok(Some(bytes.into()));
            }
        }
        Ok(None)
    }

    /// A picture of the sound itself, as PNG.
    pub async fn waveform(&self) -> Result<Bytes> {
        let task = words(
            "-filter_complex showwavespic=s=512x160:split_channels=0 -frames:v 1 -update 1 -y wave.png",
        );
        self.ffmpeg(None, task, SOUND, "drawing the sound").await?;
        Ok(read(&self.path("wave.png")).await?.into())
    }

    /// The sound as WAV files of [`SOUND_SECONDS`] each, as speech models take it: their number.
    pub async fn sounds(&self) -> Result<usize> {
        let mut task = words("-vn -ac 1 -ar 16000 -c:a pcm_s16le -f segment -segment_time");
        task.push(SOUND_SECONDS.to_string());
        task.extend(words("-y sound%d.wav"));
        self.ffmpeg(None, task, SOUND, "taking the sound out")
            .await?;
        let mut count = 0;
        while tokio::fs::try_exists(self.path(&format!("sound{count}.wav")))
            .await
            .unwrap_or(false)
        {
            count += 1;
        }
        Ok(count)
    }

    /// One of the files of [`Self::sounds`].
    pub async fn sound(&self, number: usize) -> Result<Bytes> {
        Ok(read(&self.path(&format!("sound{number}.wav")))
            .await?
            .into())
    }

    /// The sound of one segment as WAV.
    pub async fn sound_of(&self, segment: Segment) -> Result<Bytes> {
        let mut task = vec![
            "-t".to_owned(),
            format!("{:.3}", segment.end - segment.start),
        ];
        task.extend(words(
            "-vn -ac 1 -ar 16000 -c:a pcm_s16le -f wav -y piece.wav",
        ));
        self.ffmpeg(Some(segment.start), task, SOUND, "taking the sound out")
            .await?;
        Ok(read(&self.path("piece.wav")).await?.into())
    }

    /// The whole film once more, as every browser plays it. It stays on the disk: it may be as large as the film.
    pub async fn convert(&self, how: &Conversion) -> Result<Data> {
        let mut task =
            words("-map 0:v:0 -map 0:a:0? -sn -dn -pix_fmt yuv420p -movflags +faststart");
        let scale = format!(
            "scale='trunc(min(1,{0}/max(1,min(iw,ih)))*iw/2)*2':'trunc(min(1,{0}/max(1,min(iw,ih)))*ih/2)*2'",
            how.resolution
        );
        for (option, value) in [
            ("-vf", scale),
            ("-c:v", how.video.clone()),
            ("-crf", how.quality.to_string()),
            ("-preset", how.preset.clone()),
            ("-c:a", how.audio.clone()),
        ] {
            task.extend([option.to_owned(), value]);
        }
        if how.video == "libx265" {
            task.extend(words("-tag:v hvc1 -x265-params log-level=error"));
        }
        task.extend(words("-f mp4 -y converted.mp4"));
        self.ffmpeg(None, task, CONVERT, "converting the film")
            .await?;
        Data::on_disk(&self.folder, "converted.mp4")
            .await
            .map_err(disk)
    }
}

/// A picture of a kind that only ffmpeg reads (AVIF), as PNG.
///
/// # Errors
/// ffmpeg is missing or refuses the picture.
pub async fn still(extraction: &Extraction, picture: &Data) -> Result<Bytes> {
    let folder = folder()?;
    picture.put(&folder.path().join("input")).await?;
    let arguments = words(
        "-nostdin -hide_banner -v error -threads 2 -protocol_whitelist file,pipe -f mov -i file:input -frames:v 1 \
         -update 1 -y still.png",
    );
    let what = "reading the AVIF picture";
    extraction
        .run(Tool::Ffmpeg, arguments, folder.path(), FRAME, what)
        .await?;
    Ok(read(&folder.path().join("still.png")).await?.into())
}

/// How a film is converted.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    pub video: String,
    pub audio: String,
    pub quality: i64,
    pub preset: String,
    /// Of the shorter side, at most.
    pub resolution: i64,
}

/// Segments between marks: short ones joined to the one before, long ones cut again.
fn cut_at(marks: &[f64], seconds: f64, longest: f64) -> Vec<Segment> {
    let longest = longest.max(SHORTEST);
    let mut edges = vec![0.0];
    for mark in marks.iter().copied().chain([seconds]) {
        let last = edges.last().copied().unwrap_or(0.0);
        if mark - last >= SHORTEST && mark <= seconds {
            edges.push(mark);
        }
    }
    // What is left at the end belongs to the last one.
    match edges.last_mut() {
        Some(last) if edges_end(*last, seconds) => *last = seconds,
        _ => edges.push(seconds),
    }
    let mut segments = Vec::new();
    for pair in edges.windows(2) {
        let (mut start, end) = (pair[0], pair[1]);
        while end - start > longest + SHORTEST {
            let next = start + longest;
            segments.push(Segment { start, end: next });
            start = next;
        }
        segments.push(Segment { start, end });
    }
    segments
}

/// How the picture at a moment is looked for, one way after the other: from where the film is read, and its filters.
///
/// Streams without an index are entered anywhere, and nothing is seen of them before their next key picture, which may come
/// after the moment. So they are read from some seconds earlier on, from more where those were too few; a picture that is not
/// the one of the moment is none.
fn looks(reader: &str, at: f64) -> Vec<(f64, String)> {
    const SMALL: &str = "scale='min(1600,iw)':-2";
    /// What most streams have between key pictures, and nearly all.
    const BEFORE: [f64; 2] = [4.0, 30.0];
    /// How long after the moment a picture is still waited for.
    const AFTER: f64 = 30.0;
    if !matches!(reader, "mpegts" | "mpeg") {
        return vec![(at, SMALL.to_owned())];
    }
    let look = |before: f64| {
        let from = (at - before).max(0.0);
        let rest = at - from;
        // Variable 0 is when the first picture comes that can be seen.
        let filter = format!(
            "trim=end={:.3},select='if(eq(n,0),st(0,t))*0+gte(t,{rest:.3})*lte(ld(0),{:.3})',{SMALL}",
            rest + AFTER,
            rest + SHORTEST
        );
        (from, filter)
    };
    let far = if at > BEFORE[0] { 2 } else { 1 };
    BEFORE.into_iter().take(far).map(look).collect()
}

/// Whether the last edge is so near to the end that it is the end.
fn edges_end(last: f64, seconds: f64) -> bool {
    last > 0.0 && seconds - last < SHORTEST
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The numbers that stand after a word.
fn numbers(text: &str, word: &str) -> Vec<f64> {
    text.lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(word)?;
            rest.split_whitespace().next()?.parse().ok()
        })
        .collect()
}

/// A folder for one file and what is made of it.
pub(super) fn folder() -> Result<Folder> {
    Folder::new().map_err(disk)
}

pub(super) fn disk(error: std::io::Error) -> ExtractError {
    ExtractError::transient(format!("the disk failed while the file was read: {error}"))
}

pub(super) async fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    tokio::fs::write(path, bytes).await.map_err(disk)
}

pub(super) async fn read(path: &Path) -> Result<Vec<u8>> {
    tokio::fs::read(path).await.map_err(disk)
}

/// What a program noted, as text. A program with nothing to note may not have written at all.
pub(super) async fn read_text(path: &Path) -> Result<String> {
    match tokio::fs::read(path).await {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(disk(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(marks: &[f64], seconds: f64, longest: f64) -> Vec<(f64, f64)> {
        let segments = cut_at(marks, seconds, longest);
        segments.iter().map(|one| (one.start, one.end)).collect()
    }

    #[test]
    fn segments_cover_the_whole_and_are_neither_short_nor_long() {
        assert_eq!(
            edges(&[], 25.0, 10.0),
            [(0.0, 10.0), (10.0, 20.0), (20.0, 25.0)]
        );
        assert_eq!(edges(&[], 20.2, 10.0), [(0.0, 10.0), (10.0, 20.2)]);
        assert_eq!(
            edges(&[3.0, 3.1, 9.9], 10.0, 30.0),
            [(0.0, 3.0), (3.0, 10.0)]
        );
        assert_eq!(
            edges(&[4.0], 70.0, 30.0),
            [(0.0, 4.0), (4.0, 34.0), (34.0, 64.0), (64.0, 70.0)]
        );
        assert_eq!(edges(&[], 0.2, 10.0), [(0.0, 0.2)]);
        assert_eq!(edges(&[99.0, f64::NAN], 5.0, 10.0), [(0.0, 5.0)]);
    }

    #[test]
    fn numbers_are_read_from_what_programs_note() {
        let told =
            "frame:0 pts:50 pts_time:2.5\nlavfi.scene_score=0.4\nframe:1 pts:80 pts_time:4\n";
        assert_eq!(numbers(told, "pts_time:"), [2.5, 4.0]);
    }
}
