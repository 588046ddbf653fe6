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
use crate::words::counted;

/// The settings that can change while the server runs. Every other one takes a restart.
const RELOADABLE: [Reloadable; 3] = [
    Reloadable {
        settings: &["log"],
        are_files: false,
        prepare: |log, _, settings| {
            let (log, filter) = (log.clone(), settings.log.clone());
            Ok(Box::new(move || log.set(filter)))
        },
    },
    Reloadable {
        settings: &["tokens"],
        are_files: true,
        prepare: |_, running, settings| {
            let (access, grants) = (running.access.clone(), settings.admission.grants()?);
            Ok(Box::new(move || {
                let Some(grants) = grants else { return };
                let count = grants.len();
                if let Some(gone) = access.replace(grants) {
                    let gone = counted(gone as u64, "token");
                    info!("SIGHUP: tokens: {count}; {gone} removed or changed, with the connections of who had them");
                }
            }))
        },
    },
    Reloadable {
        settings: &["tls-cert", "tls-key", "tls-client-ca"],
        are_files: true,
        prepare: |_, running, settings| {
            let (encryption, tls) = (running.tls.clone(), settings.admission.tls().map_err(|wrong| wrong.why)?);
            Ok(Box::new(move || {
                if let Some(tls) = tls
                    && encryption.replace(tls)
                {
                    info!("SIGHUP: connections that begin from now on have the certificate as it is now");
                }
            }))
        },
    },
];

/// Settings that can change while the server runs, together.
struct Reloadable {
    settings: &'static [&'static str],
    /// They name files, in which there may be something else by now, so that these are read even where the settings are as
    /// they were. What they say is who is let in: whether there are any takes a restart, so that no mistake in a file opens a
    /// door, or locks it, while nobody looks.
    are_files: bool,
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
        let differs = |at: &usize| new[*at].1.texts != self.now[*at].1.texts;
        let comes_or_goes = |at: &usize| new[*at].1.texts.is_empty() != self.now[*at].1.texts.is_empty();
        let (mut ready, mut restart, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        for Reloadable { settings, are_files, prepare } in &RELOADABLE {
            let members: Vec<_> = (0..new.len()).filter(|at| settings.contains(&new[*at].0.as_str())).collect();
            if *are_files && members.iter().any(comes_or_goes) {
                restart.extend(members.into_iter().filter(differs));
            } else if *are_files || members.iter().any(differs) {
                match prepare(&self.log, running, &effective.settings) {
                    Ok(change) => ready.push((members, change)),
                    Err(why) => wrong.push(format!("{}: {why}", settings[0])),
                }
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let is_reloadable = |at: &usize| RELOADABLE.iter().any(|group| group.settings.contains(&new[*at].0.as_str()));
        restart.extend((0..new.len()).filter(|at| differs(at) && !is_reloadable(at)));
        restart.sort_unstable();
        let mut changed = Vec::new();
        for (members, change) in ready {
            change();
            changed.extend(members.into_iter().filter(differs));
        }
        for &at in &changed {
            self.now[at] = new[at].clone();
        }
        tell(&new, &restart, &changed);
        Ok(())
    }
}

/// What came of it, by the places of the settings.
fn tell(new: &[(String, Value)], restart: &[usize], changed: &[usize]) {
    for (name, value) in restart.iter().map(|at| &new[*at]) {
        let place = match &value.origin {
            Origin::File { line, .. } => format!("in line {line}"),
            _ => "no more in the file".to_owned(),
        };
        warn!("SIGHUP: {name} has changed ({place}), which takes a restart");
    }
    // What a file says that is still the same one, it tells itself.
    let names: Vec<_> = changed.iter().map(|at| new[*at].0.as_str()).collect();
    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    info!("SIGHUP: the configuration was read again; changed: {names}");
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
        for setting in RELOADABLE.iter().flat_map(|group| group.settings) {
            assert!(defaults().iter().any(|found| found.setting.name() == *setting), "{setting}");
        }
    }
}
