//! The store that a node is to use, as it was chosen.

use std::sync::Arc;

use frazil_coord::Copied;
use frazil_coord::{FirstUse, Namespace, Store, StoreUrl, UrlError};

use crate::start_error::StartError;
use crate::state_directory::store_or_default;

#[derive(Clone, Debug, Default)]
pub(crate) enum StoreChoice {
    /// The file store under the state directory.
    #[default]
    Default,
    Url(StoreUrl),
    /// Kept until somebody asks, so that the chain of calls goes on.
    Invalid(UrlError),
    /// Open already.
    Open(Arc<dyn Store>),
}

impl StoreChoice {
    pub(crate) fn parse(text: &str) -> Self {
        text.parse().map_or_else(Self::Invalid, Self::Url)
    }

    /// The URL, if one was chosen.
    pub(crate) const fn chosen(&self) -> Option<&StoreUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Default | Self::Invalid(_) | Self::Open(_) => None,
        }
    }

    /// The URL to open.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn to_open(&self) -> Result<StoreUrl, StartError> {
        match self {
            Self::Invalid(error) => Err(StartError::Url(error.clone())),
            Self::Default | Self::Url(_) => {
                store_or_default(self.chosen().cloned()).ok_or(StartError::NoStateDirectory)
            }
            Self::Open(_) => Err(StartError::NoUrl),
        }
    }

    /// What is known of where the store is. One that is open says so itself, or it does not.
    ///
    /// # Errors
    /// If the choice makes no sense.
    pub(crate) fn described(&self) -> Result<Option<StoreUrl>, StartError> {
        match self {
            Self::Open(store) => Ok(store.to_string().parse().ok()),
            _ => self.to_open().map(Some),
        }
    }

    /// The store. `url`: what [`described`](Self::described) said, and what follows from other
    /// choices.
    pub(crate) async fn open(
        &self,
        url: Option<&StoreUrl>,
        namespace: &Namespace,
    ) -> Result<Arc<dyn Store>, StartError> {
        match (self, url) {
            (Self::Open(store), _) => Ok(store.clone()),
            (_, Some(url)) => Ok(frazil_coord::open(url, namespace, Copied::Refuse).await?),
            (_, None) => Err(StartError::NoUrl),
        }
    }
}

/// When a namespace that is missing from such a store is used.
pub(crate) fn first_use(url: Option<&StoreUrl>) -> FirstUse {
    // What does not say what it is may be shared, and may forget.
    url.map_or(FirstUse::AfterSilence, |url| FirstUse::of(url.scheme))
}
