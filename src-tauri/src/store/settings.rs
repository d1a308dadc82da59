use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Result, Store};
use crate::ipc::{Download, Settings};
use crate::json::whole;

/// A pair that the person loaded from a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedModel {
    /// The target's folder.
    pub path: String,
    /// The drafter's folder, if it is one of its own.
    pub drafter: Option<String>,
}

/// Written by a load alone: a window with an older copy of the settings must not undo it.
const OF_THE_MODEL: [&str; 2] = ["model", "drafter"];
const REMEMBERED: &str = "remembered_models";
const FOLDERS: &str = "model_folders";
const DOWNLOADS: &str = "downloads";

impl Store {
    /// The settings; a value that this version cannot read counts as not set.
    pub async fn settings(&self) -> Result<Settings> {
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT key, value FROM settings")
            .fetch_all(&self.pool)
            .await?;
        let mut known = Map::new();
        for (key, value) in rows {
            let Ok(value) = serde_json::from_str::<Value>(&value) else {
                continue;
            };
            let alone = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
            if serde_json::from_value::<Settings>(alone).is_ok() {
                known.insert(key, value);
            }
        }
        Ok(serde_json::from_value(Value::Object(known)).unwrap_or_default())
    }

    /// Stores all settings but the model, which a load sets, and returns what is stored then.
    pub async fn update_settings(&self, settings: &Settings) -> Result<Settings> {
        let mut write = self.write().await?;
        if let Value::Object(fields) = serde_json::json!(settings) {
            for (key, value) in fields.iter().filter(|(key, _)| !OF_THE_MODEL.contains(&key.as_str())) {
                put(&mut write, key, &whole(value)).await?;
            }
        }
        write.commit().await?;
        self.settings().await
    }

    /// Stores what is loaded at the next start, and adds a folder to the list.
    pub async fn choose_model(&self, model: &str, drafter: Option<&str>) -> Result<()> {
        let mut remembered = self.remembered_models().await?;
        let mut write = self.write().await?;
        put(&mut write, OF_THE_MODEL[0], &serde_json::json!(model)).await?;
        put(&mut write, OF_THE_MODEL[1], &serde_json::json!(drafter)).await?;
        if model != crate::library::BUILTIN {
            remembered.retain(|known| known.path != model);
            remembered.insert(
                0,
                RememberedModel {
                    path: model.to_owned(),
                    drafter: drafter.map(str::to_owned),
                },
            );
            put(&mut write, REMEMBERED, &serde_json::json!(remembered)).await?;
        }
        write.commit().await?;
        Ok(())
    }

    /// Pairs loaded from folders, the last one first.
    pub async fn remembered_models(&self) -> Result<Vec<RememberedModel>> {
        self.listed(REMEMBERED).await
    }

    /// Forgets pairs of a folder, as a target or a drafter.
    pub async fn forget_model(&self, path: &str) -> Result<()> {
        let mut remembered = self.remembered_models().await?;
        remembered.retain(|known| known.path != path && known.drafter.as_deref() != Some(path));
        self.list(REMEMBERED, &remembered).await
    }

    /// Further folders that are looked through for models.
    pub async fn model_folders(&self) -> Result<Vec<String>> {
        self.listed(FOLDERS).await
    }

    /// Stores the further folders.
    pub async fn set_model_folders(&self, folders: &[String]) -> Result<()> {
        self.list(FOLDERS, folders).await
    }

    /// Downloads that were asked for and are not over. They hold no token.
    pub async fn downloads(&self) -> Result<Vec<Download>> {
        self.listed(DOWNLOADS).await
    }

    /// Stores the downloads.
    pub async fn set_downloads(&self, downloads: &[Download]) -> Result<()> {
        self.list(DOWNLOADS, downloads).await
    }

    async fn listed<T: for<'de> Deserialize<'de>>(&self, key: &str) -> Result<Vec<T>> {
        Ok(self.value(key).await?.unwrap_or_default())
    }

    async fn list<T: Serialize>(&self, key: &str, items: &[T]) -> Result<()> {
        self.set(key, &serde_json::json!(items)).await
    }

    /// What is kept under a key; what this version cannot read counts as nothing.
    pub(super) async fn value<T: for<'de> Deserialize<'de>>(&self, key: &str) -> Result<Option<T>> {
        let value: Option<String> = sqlx::query_scalar("SELECT value FROM settings WHERE key = ?")
            .bind(key)
            .fetch_optional(&self.pool)
            .await?;
        Ok(value.and_then(|text| serde_json::from_str(&text).ok()))
    }

    pub(super) async fn set(&self, key: &str, value: &Value) -> Result<()> {
        let mut write = self.write().await?;
        put(&mut write, key, value).await?;
        write.commit().await?;
        Ok(())
    }
}

async fn put(db: &mut sqlx::SqliteConnection, key: &str, value: &Value) -> Result<()> {
    sqlx::query(
        "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )
    .bind(key)
    .bind(value.to_string())
    .execute(db)
    .await?;
    Ok(())
}
