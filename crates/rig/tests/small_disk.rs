//! A small disk is full when it is filled, and usable again after that.

use std::fs;
use std::io;

#[test]
fn a_filled_disk_takes_nothing_until_there_is_room() {
    let disk = match frazil_rig::full_disk(64 * 1024) {
        Ok(disk) => disk,
        Err(error) => {
            assert!(error.to_string().contains("needs root"), "{error}");
            return;
        }
    };
    let file = disk.path().join("file");
    disk.fill().unwrap();
    let error = fs::write(&file, [7; 4096]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    disk.make_room().unwrap();
    fs::write(&file, [7; 4096]).unwrap();
    let path = disk.path().to_owned();
    drop(disk);
    assert!(!path.exists());
}
