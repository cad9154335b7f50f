//! Images in lookup requests: by URL and in base64.

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    app::{Reply, TestApp},
    codes::balance,
    identity::{BVN, count_uids, set_up},
};

/// Starts a server of valid and invalid images; returns its base URL.
async fn serve(app: &TestApp) -> String {
    let selfie = app.client.get(format!("{}/images/match-{BVN}.jpg", app.simulators.url()));
    let selfie = selfie.send().await.expect("a response").bytes().await.expect("a JPEG");
    let jpeg = selfie.clone();
    let large = [&selfie[..], &vec![0; 5 << 20]].concat();
    let to = format!("{}/images/match-{BVN}.jpg", app.simulators.url());
    let leads = |to: &str| {
        let to = to.to_owned();
        get(async move || (StatusCode::FOUND, [(header::LOCATION, to)]).into_response())
    };
    let router = Router::new()
        .route(
            "/selfie",
            get(async move || ([(header::CONTENT_TYPE, "text/plain")], jpeg).into_response()),
        )
        .route(
            "/page",
            get(async || ([(header::CONTENT_TYPE, "image/jpeg")], "<html>").into_response()),
        )
        .route("/large", get(async move || large.into_response()))
        .route("/elsewhere", leads(&to))
        .route("/two", leads("elsewhere"))
        .route("/three", leads("/two"))
        .route("/four", leads("/three"))
        .route("/round", leads("/round"))
        .route("/inside", leads("https://10.0.0.1/x.jpg"))
        .route("/metadata", leads("http://169.254.169.254/latest/meta-data"))
        .route("/plain", leads("http://a.example/x.jpg"))
        .route("/file", leads("file:///etc/passwd"))
        .route("/named", leads("https://user:word@a.example/x.jpg"))
        .route("/nowhere", get(async || StatusCode::FOUND.into_response()))
        .route("/blank", leads("https://"))
        .route("/nothing", get(async || StatusCode::NOT_FOUND.into_response()));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn compare(app: &TestApp, image: &str) -> Reply {
    let body = json!({ "bvn": BVN, "image": image });
    app.post("/kyc/nigeria/bvn/lookup/with-face", body).await
}

both! {
    async fn an_image_is_fetched_within_limits_and_identified_by_its_content(app: TestApp) {
        set_up(app).await;
        let url = serve(app).await;
        for (image, message) in [
            (format!("{url}/page"), "the image field must be a JPEG or a PNG"),
            (format!("{url}/large"), "the image field must be an image of at most 5 MiB"),
            (format!("{url}/four"), "the image field must be a URL that redirects at most 3 times"),
            (format!("{url}/round"), "the image field must be a URL that redirects at most 3 times"),
            (format!("{url}/inside"), "the image field must be a public https URL"),
            (format!("{url}/metadata"), "the image field must be a public https URL"),
            (format!("{url}/plain"), "the image field must be a public https URL"),
            (format!("{url}/file"), "the image field must be a public https URL"),
            (format!("{url}/named"), "the image field must be a public https URL"),
            (format!("{url}/nowhere"), "the image field must be a URL that can be fetched"),
            (format!("{url}/blank"), "the image field must be a URL that can be fetched"),
            (format!("{url}/nothing"), "the image field must be a URL that can be fetched"),
            ("http://127.0.0.1:1/x.jpg".to_owned(), "the image field must be a URL that can be fetched"),
            ("https://10.0.0.1/x.jpg".to_owned(), "the image field must be a public https URL"),
            ("https://169.254.169.254/latest/meta-data".to_owned(), "the image field must be a public https URL"),
            ("http://a.example/x.jpg".to_owned(), "the image field must be a public https URL"),
            ("https://user:word@a.example/x.jpg".to_owned(), "the image field must be a public https URL"),
            ("ftp://a.example/x.jpg".to_owned(), "the image field must be a URL or an image in base64"),
            (STANDARD.encode("GIF89a..."), "the image field must be a JPEG or a PNG"),
        ] {
            assert_eq!(compare(app, &image).await.failure(), (400, message), "{image}");
        }
        assert_eq!((balance(app).await, count_uids(app).await), (json!(10_000), 0));
        for path in ["selfie", "elsewhere", "two", "three"] {
            let fetched = compare(app, &format!("{url}/{path}")).await.data().clone();
            assert_eq!(fetched["face_data"]["status"], true, "{path}");
        }
    }

    async fn an_image_can_be_sent_in_base64(app: TestApp) {
        set_up(app).await;
        let picture = async |name: &str| {
            let url = format!("{}/images/{name}-{BVN}.jpg", app.simulators.url());
            let response = app.client.get(url).send().await.expect("a response");
            STANDARD.encode(response.bytes().await.expect("a JPEG"))
        };
        let (same, other) = (picture("match").await, picture("mismatch").await);
        for (name, picture, matches) in [("match", &same, true), ("mismatch", &other, false)] {
            for image in [picture.clone(), format!("data:image/jpeg;base64,{picture}")] {
                let compared = compare(app, &image).await.data()["face_data"]["status"].clone();
                assert_eq!(compared, Value::Bool(matches), "{name}");
            }
        }
        let padded = |bytes| {
            let mut picture = STANDARD.decode(&same).expect("base64");
            picture.resize(bytes, 0);
            STANDARD.encode(picture)
        };
        assert_eq!(compare(app, &padded(5 << 20)).await.data()["face_data"]["status"], true);
        let larger = compare(app, &padded((5 << 20) + 1)).await;
        assert_eq!(larger.failure(), (400, "the image field must be an image of at most 5 MiB"));
        assert_eq!(compare(app, &"A".repeat(9 << 20)).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
