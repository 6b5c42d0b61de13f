//! `frazil decode`.

use super::{command, data, frazil_with_input, json, stderr, stdout};

#[test]
fn decode_says_all_about_an_id() {
    let text = data(&["decode", "--json", "--layout", "discord", "175928847299117063"]);
    assert_eq!(
        text,
        "{\"id\":\"175928847299117063\",\
         \"layout\":\"time:42 worker:5 process:5 sequence:12 @2015-01-01T00:00:00Z tick:1ms\",\
         \"time\":\"2016-04-30T11:18:25.796Z\",\"unix_ms\":1462015105796,\"tick\":41944705796,\
         \"worker\":32,\"sequence\":7,\"parts\":{\"worker\":1,\"process\":0}}\n"
    );
    let text = data(&["decode", "--layout", "twitter", "1050118621198921728"]);
    assert_eq!(
        text,
        "1050118621198921728 time=2018-10-10T20:19:24.211Z tick=250367789554 worker=347 sequence=0 \
         datacenter:10 worker:27\n"
    );
    let plain = json(&data(&["decode", "--json", "0"]));
    assert_eq!(plain["parts"], json("{}"));
}

#[test]
fn decode_reads_what_next_and_servers_write_as_json() {
    let object = data(&["next", "--worker", "3", "--json"]);
    let decoded = frazil_with_input(&["decode", "--json", "-"], object.as_bytes());
    assert_eq!((json(stdout(&decoded))["worker"].as_u64(), stderr(&decoded)), (Some(3), ""));
    let answer = br#"{"ids":["1","2",3],"worker":1}"#;
    let decoded = frazil_with_input(&["decode", "-"], answer);
    assert_eq!((stdout(&decoded).lines().count(), stderr(&decoded)), (3, ""));
    let decoded = frazil_with_input(&["decode", "-"], "{\"ids\":7}\n{}\n5\n{\n");
    assert_eq!((decoded.status.code(), stdout(&decoded).lines().count()), (Some(2), 1));
    let complaints = stderr(&decoded);
    for line in ["line 1: ", "line 2: ", "line 4: "] {
        assert!(complaints.contains(line), "{complaints}");
    }
}

#[test]
fn decode_reads_hexadecimal_digits_as_people_write_them() {
    let plain = data(&["decode", "380832248485584896"]);
    for text in ["0x548fce989ff2000", "0X548FCE989FF2000", "0x0548fce989FF2000"] {
        assert_eq!(data(&["decode", text]), plain, "{text}");
        assert_eq!(data(&["decode", "--format", "hex", &text[2..]]), plain, "{text}");
    }
    assert_eq!(data(&["decode", "0x0"]), data(&["decode", "0"]));
    for text in ["0x", "0x1g", "0x+1", "0x10000000000000000"] {
        let output = command(&["decode", text]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
    }
}

#[test]
fn a_million_ids_stream_through_decode_in_order() {
    let ids = data(&["next", "-n", "1000000", "--worker", "5"]);
    let decoded = frazil_with_input(&["decode", "--json", "-"], ids.as_bytes());
    assert_eq!((decoded.status.code(), stderr(&decoded)), (Some(0), ""));
    let mut lines = stdout(&decoded).lines();
    for id in ids.lines() {
        assert!(lines.next().unwrap().starts_with(&format!("{{\"id\":\"{id}\",")));
    }
    assert_eq!(lines.next(), None);
}
