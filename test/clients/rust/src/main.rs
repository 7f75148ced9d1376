//! Manages and pings checks with the crate healthchecks: each of its calls that a healthchecks instance answers.

use healthchecks::errors::HealthchecksApiError;
use healthchecks::manage::{get_client_with_url as manager, ManageClient, UpsertResult};
use healthchecks::model::{NewCheck, UpdatedCheck};
use healthchecks::ping::get_client_with_url as pinger;
use serde_json::{json, Map, Value};
use std::env::var;
use uuid::Uuid;

fn name_of(error: &HealthchecksApiError) -> &'static str {
    match error {
        HealthchecksApiError::InvalidApiKey => "InvalidApiKey",
        HealthchecksApiError::NoCheckFound(_) => "NoCheckFound",
        HealthchecksApiError::NotWellFormed => "NotWellFormed",
        _ => "another one",
    }
}

fn walk(client: &ManageClient, version: &str, ping_url: &str) -> Result<Value, HealthchecksApiError> {
    let named = NewCheck {
        name: Some(format!("Rust {version}")),
        tags: Some(format!("rust {version}")),
        timeout: Some(120),
        grace: Some(60),
        ..NewCheck::default()
    };
    let made = client.create_check(named.clone())?;
    let id = made.id().expect("an address for pings");
    let unique = Some(vec!["name".to_owned()]);
    let (result, same) = client.upsert_check(NewCheck { unique, ..named })?;
    let is_updated = matches!(result, UpsertResult::Updated) && same.id() == made.id();
    let desc = Some("changed".to_owned());
    let changed = client.update_check(UpdatedCheck { desc, ..UpdatedCheck::default() }, &id)?;

    let ping = pinger(&id, ping_url).expect("a client for pings");
    let run = Uuid::new_v4();
    let signals = [
        ping.start_timer_with_run_id(Some(&run)),
        ping.report_success_with_run_id(Some(&run)),
        ping.report_failure(),
        ping.report_failure_with_logs("disk full"),
    ];
    let down = client.get_check(&id)?;
    let paused = client.pause(&id)?;
    let resumed = (ping.report_success(), client.get_check(&id)?.status);
    let invalid = client.create_check(NewCheck { timeout: Some(59), ..NewCheck::default() });
    let listed: Vec<String> = client.get_checks()?.into_iter().map(|check| check.name).collect();
    let channels: Vec<String> = client.get_channels()?.into_iter().map(|channel| channel.name).collect();
    let deleted = client.delete(&id)?;
    Ok(json!({
        "tags": made.tags,
        "updated": is_updated,
        "desc": changed.desc,
        "signals": signals,
        "down": [json!(down.status), json!(down.n_pings)],
        "paused": paused.status,
        "resumed": resumed,
        "invalid": invalid.err().map(|error| name_of(&error)),
        "listed": listed,
        "channels": channels,
        "deleted": deleted.id() == made.id(),
        "gone": client.get_check(&id).err().map(|error| name_of(&error)),
    }))
}

fn main() {
    let site = var("BASE_URL").unwrap().trim_end_matches("v1").to_owned();
    let ping_url = var("PING_URL").unwrap();
    let client = |key: &str, version: &str| manager(key.to_owned(), None, format!("{site}{version}")).unwrap();
    let mut results = Map::new();
    for version in ["v2", "v3"] {
        let found = walk(&client(&var("BOUND_KEY").unwrap(), version), version, &ping_url);
        results.insert(version.to_owned(), found.unwrap_or_else(|error| json!(error.to_string())));
    }
    let wrong = client("wrong", "v3").get_checks().err().map(|error| name_of(&error));
    results.insert("wrong".to_owned(), json!(wrong));
    println!("{}", Value::Object(results));
}
