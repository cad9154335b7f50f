//! Checks of log lines, in JSON and as text.

use std::collections::BTreeMap;

use serde_json::Value;

/// Lines of the host that belong to no request and no job.
const HOST_TARGETS: [&str; 3] =
    ["tollhouse::server::serve", "tollhouse_plugins", "tollhouse_app::operations::monitor"];

fn text<'l>(line: &'l Value, pointer: &str) -> &'l str {
    line.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Checks that every line is JSON, that every line of the host within a request has the request's
/// id, and that each of these requests has one line `request completed`.
pub fn check_json_lines(log: &str, requests: &[String]) {
    let mut completed: BTreeMap<String, usize> = BTreeMap::new();
    for line in log.lines() {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let target = text(&parsed, "/target");
        if !target.starts_with("tollhouse") {
            continue;
        }
        for field in ["/timestamp", "/level", "/fields/message"] {
            assert!(!text(&parsed, field).is_empty(), "no {field}: {line}");
        }
        let spans = parsed["spans"].as_array().cloned().unwrap_or_default();
        let of = |name: &str| spans.iter().find(|span| span["name"] == name);
        match (of("request"), of("job")) {
            (Some(request), _) => {
                let id = text(request, "/id");
                assert!(!id.is_empty() && !text(request, "/method").is_empty(), "{line}");
                if text(&parsed, "/fields/message") == "request completed" {
                    *completed.entry(id.to_owned()).or_default() += 1;
                }
            }
            (None, Some(job)) => assert!(!text(job, "/subject").is_empty(), "{line}"),
            (None, None) => {
                let known = HOST_TARGETS.iter().any(|room| target.starts_with(room));
                assert!(known, "belongs to no request and no job: {line}");
            }
        }
    }
    for request in requests {
        assert_eq!(completed.get(request), Some(&1), "lines `request completed` of {request}");
    }
}

/// Checks that each request has one text line `completed` with its id.
pub fn check_text_lines(log: &str, requests: &[String]) {
    let completed: Vec<&str> =
        log.lines().filter(|line| line.contains(": request completed ")).collect();
    for request in requests {
        let id = format!("request{{id=\"{request}\" ");
        let lines = completed.iter().filter(|line| line.contains(&id)).count();
        assert_eq!(lines, 1, "lines `request completed` of {request}");
    }
}
