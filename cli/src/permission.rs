//! Who may not do what: the system's "Permission denied" names neither the user nor the file's owner, and in a container or a
//! unit file that is the whole riddle.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{fs, io};

/// The folder that a path's last name is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What to say behind a file's "Permission denied": who asked, and whose the file is, called `what`, or the folder that it is
/// in where there is none to be seen. Empty where nothing is known.
pub(crate) fn who_asked(file: &Path, what: &str) -> String {
    // A process's own folder belongs to the user that it acts as.
    let Ok(me) = fs::metadata("/proc/self") else { return String::new() };
    let me = format!("; this process is user {}, group {}", me.uid(), me.gid());
    let owned = [(file, what), (folder_of(file), "the folder around it")];
    let found = owned.iter().find_map(|(path, what)| Some((fs::metadata(path).ok()?, what)));
    found.map_or_else(
        || me.clone(),
        |(it, what)| {
            format!("{me}, and {what} is of user {}, group {}, mode {:o}", it.uid(), it.gid(), it.mode() & 0o7777)
        },
    )
}

/// An error about a file that was to be made, without the name that a file has meanwhile which is to become it: who may not
/// make it, is said.
pub(crate) fn about_new(file: &Path, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return format!("{}{}", io::Error::from(error.kind()), who_asked(file, "it"));
    }
    let said = error.to_string();
    // So tempfile ends what the system says of a file of its own.
    said.split_once(" at path \"").map_or(said.as_str(), |(said, _)| said).to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_user_and_the_owner_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let uid = fs::metadata(folder.path()).unwrap().uid();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
        let file = folder.path().join("a.db");
        let said = who_asked(&file, "the file");
        assert!(said.contains(&format!("this process is user {uid},")), "{said}");
        assert!(said.contains("the folder around it is of user") && said.ends_with("mode 750"), "{said}");
        fs::write(&file, "").unwrap();
        assert!(who_asked(&file, "the file").contains("the file is of user"));
        assert!(!who_asked(Path::new("/no/such/folder/a.db"), "it").contains("of user"));
        let denied = io::Error::new(io::ErrorKind::PermissionDenied, "Permission denied at path \"/x/.tmp12\"");
        let said = about_new(&folder.path().join("new"), &denied);
        assert!(said.contains("the folder around it is of user") && !said.contains(".tmp12"), "{said}");
    }
}
