//! `boltkv delete`: removes keys.

use std::collections::HashSet;
use std::io;

use boltkv_client::{Bucket, Client, Committed, Error, TransactionResult, TxnPart};
use bytes::Bytes;
use clap::Args;

use crate::condition::DeleteCondition;
use crate::failure::{Failure, Outcome, before_a_verdict};
use crate::file::number_line;
use crate::remote::{InBucket, Remote, bytes_parser};

/// Remove keys
///
/// Several keys are removed as one transaction: nobody sees some of them gone and others not yet. How many there were is
/// printed then; those that were not there do not keep the others from being removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv delete hello
  boltkv delete red green blue
  boltkv delete --bucket users/eu ada
  boltkv delete lock --if-equals \"$HOSTNAME\"     # only one's own

Exit code 1: there was no such key, or, of several, one was not there: the others are removed. Or the condition does \
not hold: then nothing is removed, of several keys if it does not hold of one.")]
pub(crate) struct Delete {
    /// The keys, byte for byte
    #[arg(value_name = "KEY", value_parser = bytes_parser(), required = true)]
    keys: Vec<Bytes>,
    #[command(flatten)]
    condition: DeleteCondition,
    /// Print a JSON object, also of one key: {"deleted":N}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

impl Delete {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.bucket.of_entries()?;
        // A key that is named twice is removed once.
        let mut named = HashSet::new();
        let keys: Vec<_> = self.keys.iter().filter(|key| named.insert(*key)).collect();
        let missing = self.remote.run(async |client| {
            let bucket = client.bucket_at(path);
            match keys.as_slice() {
                [key] => self.delete_one(&bucket, key).await,
                keys => self.delete_each(&client, &bucket, keys).await,
            }
        })?;
        if self.json || self.keys.len() > 1 {
            let deleted = keys.len() - missing.len();
            let printed = number_line(self.json, "deleted", deleted, &mut io::stdout().lock());
            before_a_verdict(printed.map_err(|error| Failure::result(&error)))?;
        }
        match missing.as_slice() {
            [] => Ok(()),
            missing => Err(self.bucket.no_keys(missing)),
        }
    }

    /// Removes a key; answers it where it was not there.
    async fn delete_one<'a>(&self, bucket: &Bucket, key: &'a Bytes) -> Outcome<Vec<&'a Bytes>> {
        let existed = match bucket.delete_if(key, self.condition.cond()).await {
            Err(error) if self.bucket.is_yet_to_be_made(&error) => false,
            answer => answer.map_err(Failure::write)?.existed,
        };
        Ok(if existed { Vec::new() } else { vec![key] })
    }

    /// Removes keys, all at once; answers those that were not there.
    async fn delete_each<'a>(&self, client: &Client, bucket: &Bucket, keys: &[&'a Bytes]) -> Outcome<Vec<&'a Bytes>> {
        let condition = self.condition.cond();
        let all = keys.iter().fold(client.transaction(), |all, key| all.delete_if(bucket, key, &condition));
        match all.commit().await {
            Err(error) if self.bucket.is_yet_to_be_made(&error) => Ok(keys.to_vec()),
            Err(error) => Err(self.refused(error, keys)),
            Ok(Committed { results, .. }) => {
                let existed =
                    |result: &TransactionResult| matches!(result, TransactionResult::Deleted { existed: true });
                Ok(keys.iter().zip(&results).filter(|(_, result)| !existed(result)).map(|(key, _)| *key).collect())
            }
        }
    }

    /// Why none of these was removed.
    fn refused(&self, error: Error, keys: &[&Bytes]) -> Failure {
        let key = match error.failed_part() {
            Some(TxnPart::Request(at)) => keys.get(usize::from(at)),
            _ => None,
        };
        let failure = Failure::write(error);
        match key {
            Some(key) => failure.prefixed(&self.bucket.named(key)),
            None => failure,
        }
    }
}
