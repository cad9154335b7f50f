use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use zune_jpeg::{JpegDecoder, zune_core::bytestream::ZCursor};

use super::{bvn_at_prembly, dojah, prembly, send};
use crate::world::World;

const BVN: &str = "54651333604";
/// The first bytes of a one-pixel PNG.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

async fn picture(world: &World, name: &str) -> Vec<u8> {
    let response = world.request(Method::GET, &format!("/images/{name}.jpg")).send().await.unwrap();
    assert_eq!(response.status(), 200, "{name}");
    assert_eq!(response.headers()["content-type"], "image/jpeg");
    response.bytes().await.unwrap().to_vec()
}

/// Decodes a picture; returns width and height.
fn decode(jpeg: &[u8]) -> (usize, usize) {
    let mut decoder = JpegDecoder::new(ZCursor::new(jpeg));
    decoder.decode().unwrap();
    decoder.dimensions().unwrap()
}

/// Returns the picture without its mark, which is the first segment.
fn unmarked(jpeg: &[u8]) -> Vec<u8> {
    assert_eq!(jpeg[..4], [0xff, 0xd8, 0xff, 0xfe]);
    let length = usize::from(u16::from_be_bytes([jpeg[4], jpeg[5]]));
    [&jpeg[..2], &jpeg[4 + length..]].concat()
}

async fn compared(world: &World, image: &str) -> Value {
    let request_body = json!({ "number": BVN, "image": image });
    let (status, body) = send(prembly(world, "/verification/bvn_w_face", &request_body)).await;
    if status == 200 { body["face_data"].clone() } else { json!(status) }
}

#[tokio::test]
async fn pictures_are_jpegs() {
    let world = World::new().await;
    for name in ["match", "mismatch", "noface"] {
        let jpeg = picture(&world, &format!("{name}-{BVN}")).await;
        assert_eq!(decode(&jpeg), (160, 200), "{name}");
        assert!(jpeg.len() < 20_000);
    }
    assert_eq!(decode(&picture(&world, "document-A00400000").await), (320, 200));
    let photo = &bvn_at_prembly(&world, BVN).await["data"]["base64Image"];
    let photo = BASE64_STANDARD.decode(photo.as_str().unwrap()).unwrap();
    assert!(decode(&photo) == (160, 200) && photo.len() < 20_000, "{}", photo.len());
    let selfie = picture(&world, &format!("match-{BVN}")).await;
    assert_eq!(unmarked(&photo), unmarked(&selfie), "the same person");
    let other = picture(&world, &format!("mismatch-{BVN}")).await;
    assert_ne!(unmarked(&selfie), unmarked(&other));

    let head = world.request(Method::HEAD, &format!("/images/match-{BVN}.jpg")).send().await;
    assert_eq!(head.unwrap().status(), 200);
    let long = format!("match-{}.jpg", "1".repeat(65));
    for name in [
        "match-1.png", "other-1.jpg", "portrait-1.jpg", "match.jpg", "match-.jpg", "match-ä.jpg",
        &long,
    ] {
        let response = world.request(Method::GET, &format!("/images/{name}")).send().await.unwrap();
        assert_eq!(response.status(), 404, "{name}");
    }
}

#[tokio::test]
async fn a_picture_is_recognized_in_a_request() {
    let world = World::new().await;
    let found = [
        ("match-1", true, "Face Match"),
        (&format!("document-{BVN}"), true, "Face Match"),
        ("document-22222222222", false, "Face does not match"),
        ("mismatch-1", false, "Face does not match"),
        ("noface-1", false, "No face detected in the image"),
    ];
    for (name, status, message) in found {
        let base64 = BASE64_STANDARD.encode(picture(&world, name).await);
        let (head, tail) = base64.split_at(76);
        for image in [
            base64.clone(),
            base64.trim_end_matches('=').to_owned(),
            format!("{head}\r\n{tail}\n"),
            format!("data:image/jpeg;base64,{base64}"),
            format!("{}/images/{name}.jpg", world.simulators.url()),
        ] {
            let face = compared(&world, &image).await;
            assert_eq!((&face["status"], &face["message"]), (&json!(status), &json!(message)));
        }
    }
    for (bvn, status) in [(BVN, true), ("22222222222", false)] {
        let record = bvn_at_prembly(&world, bvn).await;
        let photo = record["data"]["base64Image"].as_str().unwrap();
        assert_eq!(compared(&world, photo).await["status"], status, "the photo on record of {bvn}");
    }
}

#[tokio::test]
async fn an_unknown_picture_does_not_match_and_invalid_data_is_rejected() {
    let world = World::new().await;
    let jpeg = unmarked(&picture(&world, "match-1").await);
    let strangers = [
        BASE64_STANDARD.encode(&jpeg),
        BASE64_STANDARD.encode(&jpeg[..40]),
        PNG.to_owned(),
        "https://pictures.example/me.png".to_owned(),
    ];
    for image in strangers {
        assert_eq!(compared(&world, &image).await["status"], false, "{image}");
    }
    for image in ["", "no picture", "Tm8gcGljdHVyZQ==", "ftp://pictures.example/me.png"] {
        assert_eq!(compared(&world, image).await, 400, "{image}");
    }
    let selfie =
        "https://res.cloudinary.com/dh3i1wodq/image/upload/v1675417496/cbimage_3_drqdoc.jpg";
    assert_eq!(compared(&world, selfie).await["status"], true);
}

#[tokio::test]
async fn a_document_has_its_number() {
    let world = World::new().await;
    let image = |name: &str| format!("{}/images/{name}.jpg", world.simulators.url());
    for (path, number, key, name) in [
        ("drivers_license/image", "AAD23208212298", "frsc_data", "lastName"),
        ("national_passport_image", "A00400000", "data", "last_name"),
        ("voters_card/image", "987f545AJ67890", "vc_data", "last_name"),
        ("nin/image", "12345678909", "nin_data", "surname"),
    ] {
        let look_up = async |name: &str| {
            let request_body = json!({ "image": image(name) });
            send(prembly(&world, &format!("/verification/{path}"), &request_body)).await
        };
        let (status, body) = look_up(&format!("document-{number}")).await;
        assert_eq!((status, &body["response_code"]), (200, &json!("00")), "{body}");
        assert!(body[key][name].is_string(), "{path}: {body}");
        let (status, body) = look_up("match-1").await;
        assert_eq!((status, &body["status"]), (200, &json!(false)), "{body}");
        assert!(body.get(key).is_none());
    }
    let request_body =
        json!({ "input_type": "url", "imagefrontside": image("document-A00400000") });
    let request = dojah(&world, Method::POST, "/api/v1/document/analysis").json(&request_body);
    let (status, body) = send(request).await;
    assert_eq!(status, 200, "{body}");
    let fields = body["entity"]["text_data"].as_array().unwrap();
    let value = |name: &str| &fields.iter().find(|f| f["field_name"] == name).unwrap()["value"];
    assert_eq!((value("Document Number"), value("Surname")), (&json!("A00400000"), &json!("TEST")));
}
