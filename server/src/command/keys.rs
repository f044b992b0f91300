//! `loupe keys`: API keys made and listed on the data folder itself, for whoever has lost theirs.

use clap::Subcommand;
use loupe_wire::{APIKeyCreateRequest, Permission, reading};

use crate::{
    boot,
    config::Config,
    v1::{
        api_keys,
        organizations::{self, OWNER_EMAIL},
    },
};

#[derive(Subcommand)]
pub enum Keys {
    /// Make a key and print its secret, the only time it is shown
    Create {
        /// What the key is for; active keys of one user have different names
        #[arg(long)]
        name: String,
        /// Highest levels of the key: read, write, delete, admin
        #[arg(long, value_delimiter = ',', value_parser = permission, default_value = "read,write,delete")]
        permissions: Vec<Permission>,
        /// The user that the key belongs to
        #[arg(long, default_value = OWNER_EMAIL)]
        user: String,
    },
    /// List the keys of a user; secrets are not kept and cannot be shown
    List {
        /// The user that the keys belong to
        #[arg(long, default_value = OWNER_EMAIL)]
        user: String,
    },
}

fn permission(text: &str) -> Result<Permission, String> {
    reading::from_value(&text.into()).map_err(|_| "one of read, write, delete, admin".to_owned())
}

/// The wire name of an enum's case.
fn word(value: impl serde::Serialize) -> String {
    crate::v1::tasks::name_of(value)
}

pub async fn run(config: Config, keys: Keys) -> anyhow::Result<()> {
    boot::log(&config);
    let started = boot::open(config).await?;
    let done = act(&started, keys).await;
    started.close().await;
    done
}

async fn act(started: &boot::Started, keys: Keys) -> anyhow::Result<()> {
    let app = &started.app;
    if let Some(secret) = &started.first_key {
        println!("First key, of the level admin (shown once, keep it): {secret}");
    }
    let caller = organizations::local_caller(app).await?;
    match keys {
        Keys::Create {
            name,
            permissions,
            user,
        } => {
            let request = APIKeyCreateRequest {
                name,
                permissions: Some(permissions),
                ..Default::default()
            };
            let (_, secret) = api_keys::create(app, &caller, &user, request).await?;
            println!("{secret}");
        }
        Keys::List { user } => {
            for key in api_keys::list(app, &caller, &user, true).await? {
                let permissions: Vec<String> = key.permissions.iter().map(word).collect();
                let used = key.last_used_at.map_or_else(
                    || "never used".to_owned(),
                    |at| format!("used {}", at.format("%Y-%m-%d")),
                );
                println!(
                    "{}  {}…  {}  {}  {used}  {}",
                    key.key_id.unwrap_or_default(),
                    key.key_prefix.unwrap_or_default(),
                    word(key.status),
                    permissions.join(","),
                    key.name,
                );
            }
        }
    }
    Ok(())
}
