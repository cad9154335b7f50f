//! Serves pictures, and recognizes them in requests.
//!
//! A comment in the file (its COM segment) describes the content, and is preserved when the picture
//! is forwarded.

use axum::{
    Router,
    extract::Path,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use url::Url;

use super::{kinds, portrait};

const MARK: &str = "tollhouse-picture:";
/// The selfie that Prembly's documentation uses with its test identities.
const DOCUMENTED_SELFIE: &str = "/cbimage_3_drqdoc.jpg";
const BASE64_ANY_PADDING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The content of a picture. A person is identified by the normalized number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Picture {
    /// A face that matches any person.
    Match,
    /// A face that matches no person.
    Mismatch,
    NoFace,
    /// A document with its holder's face.
    Document {
        number: String,
    },
    /// The photo on record of a person.
    Portrait {
        key: String,
    },
}

/// The result of a face comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    Different,
    NoFace,
}

pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{name}", get(serve))
}

async fn serve(Path(name): Path<String>) -> Response {
    match picture_by_name(&name) {
        Some(jpeg) => ([(CONTENT_TYPE, "image/jpeg")], jpeg).into_response(),
        None => (StatusCode::NOT_FOUND, "This picture does not exist.").into_response(),
    }
}

/// Returns the picture with a name such as `match-54651333604.jpg`.
fn picture_by_name(name: &str) -> Option<Vec<u8>> {
    let mark = name.strip_suffix(".jpg")?;
    let (_, number) = mark.split_once('-')?;
    let key = kinds::normalize(number.trim_start_matches('+'))?;
    let jpeg = match Picture::from_comment(mark)? {
        Picture::Match => portrait::face(&key),
        Picture::Mismatch => portrait::face(&format!("not {key}")),
        Picture::NoFace => portrait::landscape(&key),
        Picture::Document { .. } => portrait::card(&key),
        Picture::Portrait { .. } => return None,
    };
    Some(with_comment(jpeg, mark))
}

/// Returns the photo on record of a person, as a base64 JPEG.
pub(super) fn portrait_base64(key: &str) -> String {
    let jpeg = with_comment(portrait::face(key), &format!("portrait-{key}"));
    base64::prelude::BASE64_STANDARD.encode(jpeg)
}

/// Adds the mark as the first segment of the file.
fn with_comment(mut jpeg: Vec<u8>, mark: &str) -> Vec<u8> {
    let text = format!("{MARK}{mark}");
    let Ok(length) = u16::try_from(text.len() + 2) else { return jpeg };
    let mut segment = vec![0xff, 0xfe];
    segment.extend(length.to_be_bytes());
    segment.extend(text.into_bytes());
    let start = jpeg.len().min(2);
    jpeg.splice(start..start, segment);
    jpeg
}

impl Picture {
    fn from_comment(mark: &str) -> Option<Picture> {
        let (kind, number) = mark.split_once('-')?;
        Some(match kind {
            "match" => Picture::Match,
            "mismatch" => Picture::Mismatch,
            "noface" => Picture::NoFace,
            "document" => Picture::Document { number: number.to_owned() },
            "portrait" => Picture::Portrait { key: number.to_owned() },
            _ => return None,
        })
    }

    /// Recognizes a picture by URL or content. A URL is not fetched: its path suffices. `None` if
    /// the text is neither a URL nor a picture.
    pub(super) fn from_url_or_base64(text: &str) -> Option<Picture> {
        match Url::parse(text.trim()) {
            Ok(url) if ["http", "https"].contains(&url.scheme()) => Some(Picture::from_url(&url)),
            _ => Picture::from_base64(text),
        }
    }

    /// A picture from elsewhere, or without a mark, matches no person.
    fn from_url(url: &Url) -> Picture {
        if url.path().ends_with(DOCUMENTED_SELFIE) {
            return Picture::Match;
        }
        let name =
            url.path().rsplit_once("/images/").and_then(|(_, name)| name.strip_suffix(".jpg"));
        name.and_then(Picture::from_comment).unwrap_or(Picture::Mismatch)
    }

    /// With or without the prefix of a data URL.
    pub(super) fn from_base64(text: &str) -> Option<Picture> {
        let body = match text.split_once("base64,") {
            Some((head, body)) if head.trim_start().starts_with("data:") => body,
            _ => text,
        };
        let body: String = body.split_ascii_whitespace().collect();
        let bytes = BASE64_ANY_PADDING.decode(body).ok()?;
        match bytes.as_slice() {
            [0x89, b'P', b'N', b'G', ..] => Some(Picture::Mismatch),
            [0xff, 0xd8, segments @ ..] => {
                let mark = find_comment(segments).and_then(|text| text.strip_prefix(MARK));
                Some(mark.and_then(Picture::from_comment).unwrap_or(Picture::Mismatch))
            }
            _ => None,
        }
    }

    /// Compares the picture with the person of this key.
    pub(super) fn compare_to_key(&self, key: &str) -> Comparison {
        match (self, self.key()) {
            (Picture::NoFace, _) => Comparison::NoFace,
            (Picture::Match, _) => Comparison::Same,
            (_, Some(own)) if own == key => Comparison::Same,
            _ => Comparison::Different,
        }
    }

    /// Compares two pictures.
    pub(super) fn compare(&self, other: &Picture) -> Comparison {
        match (self, other) {
            (Picture::NoFace, _) | (_, Picture::NoFace) => Comparison::NoFace,
            (Picture::Mismatch, _) | (_, Picture::Mismatch) => Comparison::Different,
            (Picture::Match, _) | (_, Picture::Match) => Comparison::Same,
            _ => self.key().map_or(Comparison::Different, |key| other.compare_to_key(&key)),
        }
    }

    fn key(&self) -> Option<String> {
        match self {
            Picture::Document { number } => kinds::normalize(number),
            Picture::Portrait { key } => Some(key.clone()),
            _ => None,
        }
    }
}

/// Returns the first comment in the segments before the image data.
fn find_comment(mut segments: &[u8]) -> Option<&str> {
    while let [0xff, kind, high, low, rest @ ..] = segments {
        let length = usize::from(u16::from_be_bytes([*high, *low])).checked_sub(2)?;
        let content = rest.get(..length)?;
        match kind {
            0xfe => return std::str::from_utf8(content).ok(),
            // Start of scan: image data follows.
            0xda => return None,
            _ => segments = rest.get(length..)?,
        }
    }
    None
}
