//! What SIGHUP does: the configuration file is read again, and what may change while the server runs is changed. A file with
//! a mistake changes nothing.

use std::fs;

use boltkv_server::{AccessHandle, TlsHandle};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tracing::{error, info, warn};

use super::layers::{Effective, Flags, Found, Origin, Value};
use super::log::Log;
use super::settings::Settings;
use crate::failure::{Failure, Outcome};

/// The settings that can change while the server runs. Every other one takes a restart.
const RELOADABLE: [Reloadable; 3] = [
    Reloadable {
        setting: "log",
        always: false,
        prepare: |log, _, settings| {
            let (log, filter) = (log.clone(), settings.log.clone());
            Ok(Box::new(move || log.set(filter)))
        },
    },
    Reloadable {
        setting: "tokens",
        always: true,
        prepare: |_, running, settings| {
            let (access, grants) = (running.access.clone(), settings.admission.grants()?);
            Ok(Box::new(move || {
                let Some(grants) = grants else { return };
                let count = grants.len();
                if let Some(gone) = access.replace(grants) {
                    warn!("SIGHUP: there are {count} tokens; {gone} are gone or changed");
                } else {
                    warn!("SIGHUP: the server was started without tokens; to ask for them takes a restart");
                }
            }))
        },
    },
    Reloadable {
        setting: "tls-cert",
        always: true,
        prepare: |_, running, settings| {
            let (encryption, tls) = (running.tls.clone(), settings.admission.tls()?);
            Ok(Box::new(move || {
                let Some(tls) = tls else { return };
                if encryption.replace(tls) {
                    warn!("SIGHUP: connections that begin from now on have the certificate as it is now");
                } else {
                    warn!("SIGHUP: the server was started without a certificate; to encrypt takes a restart");
                }
            }))
        },
    },
];

/// A setting that can change while the server runs.
struct Reloadable {
    setting: &'static str,
    /// It is prepared even where the setting is as it was: it names a file, in which there may be something else by now.
    always: bool,
    /// Makes ready what is new, and changes nothing yet; or says why it cannot be used. Once all are ready, all are changed.
    prepare: fn(&Log, &Running, &Settings) -> Result<Change, String>,
}

type Change = Box<dyn FnOnce() + Send>;

/// The parts of a server that runs that settings can change.
pub(super) struct Running {
    pub(super) access: AccessHandle,
    pub(super) tls: TlsHandle,
}

/// Reads the settings again when asked to, one time after the other.
pub(super) struct Reloader {
    flags: Flags,
    log: Log,
    /// The settings that hold now, with their values.
    now: Vec<(String, Value)>,
    /// Whether there is anything to read again.
    has_files: bool,
}

/// Asks for a reload, and does not wait for it.
#[derive(Clone)]
pub(super) struct Reload(mpsc::Sender<()>);

impl Reload {
    /// From now on the settings are read again. One that is asked for while another is under way is done after it; more are
    /// the same one.
    pub(super) fn ask(&self) {
        // Where one waits already, it does what this one would.
        let _ = self.0.try_send(());
    }
}

impl Reloader {
    pub(super) fn new(flags: &Flags, effective: &Effective, log: Log) -> Self {
        let now = effective.values.iter().map(named).collect();
        let has_files = effective.file.is_some() || effective.settings.admission.has_files();
        Self { flags: flags.clone(), log, now, has_files }
    }

    /// Reloads in a task of its own, as long as the runtime is there.
    pub(super) fn start(mut self, running: Running) -> Reload {
        let (ask, mut asked) = mpsc::channel(1);
        tokio::spawn(async move {
            while asked.recv().await.is_some() {
                self.reload(&running).await;
            }
        });
        Reload(ask)
    }

    async fn reload(&mut self, running: &Running) {
        if !self.has_files {
            warn!("SIGHUP: there is no configuration file to read again; the server goes on");
            return;
        }
        let flags = self.flags.clone();
        // Files and names of hosts are waited for.
        let read = spawn_blocking(move || again(&flags)).await;
        let read = read.unwrap_or_else(|error| Err(Failure::not_done(error.to_string())));
        let wrong = match read {
            Ok(effective) => match self.change(running, &effective) {
                Ok(()) => return,
                Err(wrong) => wrong,
            },
            Err(failure) => failure.lines(),
        };
        for line in wrong {
            error!("SIGHUP: {line}");
        }
        error!("SIGHUP: nothing was changed; the server goes on as it was");
    }

    /// Changes what may change, and says what may not.
    ///
    /// # Errors
    /// What of it cannot be used. Then nothing is changed.
    fn change(&mut self, running: &Running, effective: &Effective) -> Result<(), Vec<String>> {
        let new: Vec<_> = effective.values.iter().map(named).collect();
        let (mut ready, mut restart, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        for (at, ((name, new), (_, now))) in new.iter().zip(&self.now).enumerate() {
            let is_changed = new.texts != now.texts;
            match RELOADABLE.iter().find(|reloadable| reloadable.setting == name) {
                Some(reloadable) if is_changed || reloadable.always => {
                    match (reloadable.prepare)(&self.log, running, &effective.settings) {
                        Ok(change) => ready.push((at, change)),
                        Err(why) => wrong.push(format!("{name}: {why}")),
                    }
                }
                None if is_changed => restart.push((name, &new.origin)),
                _ => {}
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let mut changed = Vec::new();
        for (at, change) in ready {
            change();
            // What a file says that is still the same one, it tells itself.
            if self.now[at].1.texts != new[at].1.texts {
                changed.push(new[at].0.as_str());
            }
            self.now[at] = new[at].clone();
        }
        for (name, origin) in restart {
            let place = match origin {
                Origin::File { line, .. } => format!("in line {line}"),
                _ => "no more in the file".to_owned(),
            };
            warn!("SIGHUP: {name} has changed ({place}), which takes a restart");
        }
        let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") };
        info!("SIGHUP: the configuration was read again; changed: {changed}");
        Ok(())
    }
}

fn named(found: &Found) -> (String, Value) {
    (found.setting.name().to_owned(), found.value.clone())
}

/// The settings as they are now. What can be read once only, such as a pipe, is not waited for.
fn again(flags: &Flags) -> Outcome<Effective> {
    if let Some(path) = flags.file()
        && fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file())
    {
        return Err(Failure::usage(format!("{} is no file, and cannot be read again", path.display())));
    }
    flags.read()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::layers::defaults;

    #[test]
    fn what_can_change_is_a_setting() {
        for Reloadable { setting, .. } in &RELOADABLE {
            assert!(defaults().iter().any(|found| found.setting.name() == *setting), "{setting}");
        }
    }
}
