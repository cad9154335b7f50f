//! Limits the bytes of large responses that clients have not received yet: of all of them, and of
//! those of one company.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollhouse_platform::{
    error::{Error, Result},
    limits::{owner::OwnerMap, rate::RateLimitExceeded},
    values::id::Owner,
};

/// Size above which a response is counted.
const LARGE: u64 = 64 << 10;
/// Bytes per permitted request. Most responses are much smaller.
const BYTES_PER_REQUEST: usize = 256 << 10;

/// A limiter of responses. Cheap to clone.
#[derive(Clone)]
pub struct ResponseLimiter {
    kib: Arc<Semaphore>,
    /// Each owner may use half of `kib`.
    owners: OwnerMap<Owner, Semaphore>,
    owner_kib: usize,
}

/// The bytes of a response, which are counted until they are sent.
struct CountedBytes {
    bytes: Bytes,
    _permits: [OwnedSemaphorePermit; 2],
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ResponseLimiter {
    /// Creates a limiter for a listener with this number of concurrent requests.
    #[must_use]
    pub fn new(requests: usize) -> ResponseLimiter {
        let kib = requests.saturating_mul(BYTES_PER_REQUEST >> 10).min(Semaphore::MAX_PERMITS);
        let all = Arc::new(Semaphore::new(kib));
        ResponseLimiter { kib: all, owners: OwnerMap::default(), owner_kib: kib.div_ceil(2) }
    }

    /// Counts a large response until it is sent; one that exceeds the share of its owner counts as
    /// the whole share. 429 if the responses of this owner take too much memory, 503 if those of
    /// all do. Streams are not counted, because they are not held in memory. Responses to
    /// unauthenticated clients are not counted either: files and documents, which exist once.
    pub async fn count(&self, owner: Option<Owner>, response: Response) -> Result<Response> {
        let size = response.body().size_hint().exact().unwrap_or(0);
        let Some(owner) = owner.filter(|_| size > LARGE) else { return Ok(response) };
        let kib = usize::try_from(size >> 10).unwrap_or(usize::MAX).min(self.owner_kib);
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let of_owner = self.owners.get_or_create(&owner, || Semaphore::new(self.owner_kib));
        let late = |_| RateLimitExceeded { seconds: 1 };
        let permits = [
            of_owner.try_acquire_many_owned(kib).map_err(late)?,
            self.kib.clone().try_acquire_many_owned(kib).map_err(|_| OVERLOADED)?,
        ];
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.map_err(Error::internal)?.to_bytes();
        let counted = Bytes::from_owner(CountedBytes { bytes, _permits: permits });
        Ok(Response::from_parts(head, Body::from(counted)))
    }
}

const OVERLOADED: Error = Error::Unavailable("the host is overloaded");

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_company_holds_at_most_half_of_the_bytes() {
        let limiter = ResponseLimiter::new(8); // 2 MiB
        let send = async |company: &str, kib: usize| {
            let response = Response::new(Body::from(vec![0; kib << 10]));
            let counted = limiter.count(Some(Owner::Company(company.into())), response).await?;
            Ok::<_, Error>(counted.into_body().collect().await.expect("bytes").to_bytes())
        };
        let of_a = [send("a", 512).await.unwrap(), send("a", 512).await.unwrap()];
        assert!(matches!(send("a", 65).await, Err(Error::RateLimited(_))));
        assert_eq!(send("a", 64).await.unwrap().len(), 64 << 10, "small ones are not counted");
        let part = send("b", 1_024).await.unwrap().slice(..1);
        assert!(matches!(send("c", 65).await, Err(Error::Unavailable(_))));
        drop(of_a);
        let _of_a = send("a", 1_024).await.unwrap();
        assert!(matches!(send("b", 65).await, Err(Error::RateLimited(_))), "a part is in flight");
        drop(part);
        send("b", 4_096).await.expect("one of any size");
    }
}
