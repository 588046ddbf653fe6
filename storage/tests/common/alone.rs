//! An edit in a transaction of its own, which a closure makes that may be told to fail: on the engine and on the model.

use super::edit::{Answer, Edit};
use super::model::{Model, Refusal};
use boltkv_storage::{Db, Error, Result};

pub type Outcome = std::result::Result<Answer, Failure>;

/// Why a transaction that ends by itself has failed.
#[derive(Debug)]
pub enum Failure {
    /// It was to fail.
    Asked,
    Of(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Of(error)
    }
}

/// What the closure returns that has made an edit.
pub fn done(answer: Result<Answer>, fails: bool) -> Outcome {
    let answer = answer?;
    if fails { Err(Failure::Asked) } else { Ok(answer) }
}

/// Has `act` make the edit, which must answer as the model does. The model changes where the database does; whether they
/// did is returned.
pub fn alone(db: &Db, model: &mut Model, edit: &Edit, fails: bool, act: impl FnOnce(&Db, &Edit) -> Outcome) -> bool {
    let mut changed = model.clone();
    let expected = edit.apply_to_model(&mut changed);
    match act(db, edit) {
        Ok(answer) => assert_eq!(Ok(answer), expected, "{edit:?}"),
        Err(Failure::Asked) => assert!(fails && expected.is_ok(), "{edit:?}"),
        Err(Failure::Of(error)) => assert_eq!(Err(Refusal::from(error)), expected, "{edit:?}"),
    }
    let committed = expected.is_ok() && !fails;
    if committed {
        *model = changed;
    }
    committed
}
