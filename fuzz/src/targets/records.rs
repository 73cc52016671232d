//! Files of records: any bytes give records or an error, in order and by position alike.

use crate::support::Scratch;
use mxrt::internal::io::recordio::{RecordFile, RecordReader, RecordWriter};

pub(super) fn run(bytes: &[u8]) {
    let file = Scratch::new("records", bytes);
    let mut reader = RecordReader::open(file.path()).expect("an ordinary file");
    let random = RecordFile::open(file.path()).expect("an ordinary file");
    let (mut starts, mut records) = (Vec::new(), Vec::new());
    let mut damaged = false;
    loop {
        let position = reader.position();
        match reader.read() {
            Ok(Some(record)) => {
                let (again, behind) = random.read(position).expect("read again").expect("a record");
                assert!(again == record && behind == reader.position());
                assert!(record.len() <= bytes.len());
                starts.push(position);
                records.push(record);
            }
            Ok(None) => break,
            Err(_) => {
                damaged = true;
                break;
            }
        }
    }
    let found = random.positions(0, u64::MAX);
    if !damaged {
        assert_eq!(found.expect("as they were read"), starts);
        // What was read is written as it was.
        let copy = Scratch::new("records-copy", b"");
        let mut writer = RecordWriter::create(copy.path()).expect("a file");
        records.iter().for_each(|record| writer.write(record).expect("written"));
        writer.flush().expect("written");
        let mut reader = RecordReader::open(copy.path()).expect("a file");
        for record in records {
            assert_eq!(reader.read().expect("a record"), Some(record));
        }
    }
    for position in [0, 1, 4, bytes.len() as u64 / 2] {
        let _ = random.find(position);
        let _ = random.read(position);
    }
}
