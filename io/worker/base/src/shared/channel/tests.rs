// SPDX-License-Identifier: Apache-2.0
//! What a channel keeps, and what its readers get of it.

use std::time::Duration;

use super::*;

#[test]
fn readers_get_what_was_published_from_where_they_begin() {
    let channel = Channel::default();
    let first = publish(&channel, "a", None);
    publish(&channel, "b", None);
    for (start, expected) in
        [(Start::Oldest, "ab"), (Start::Newest, ""), (Start::After(first), "b"), (Start::After(first + 1), "")]
    {
        let mut reader = channel.subscribe("t", start, Framing::Bytes).unwrap();
        assert_eq!(text(&mut reader), expected, "{start:?}");
    }
    let mut newest = channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap();
    assert_eq!(publish(&channel, "c", None), first + 2);
    publish(&channel, "", None);
    publish(&channel, "d", None);
    assert_eq!((text(&mut newest), text(&mut newest)), ("cd".to_owned(), String::new()));
    let unknown = [0, first - 2, first + 5, u64::MAX];
    for number in unknown {
        let gone = channel.subscribe("t", Start::After(number), Framing::Bytes);
        assert_eq!(gone.unwrap_err(), ChannelError::Gone, "{number}");
    }
}

#[test]
fn messages_are_told_apart_as_the_reader_wishes() {
    let channel = Channel::default();
    let first = publish(&channel, "data: x\n\n", None);
    publish(&channel, "", None);
    let read = |framing, most: usize| {
        let mut reader = channel.subscribe("t", Start::Oldest, framing).unwrap();
        let mut all = Vec::new();
        while let Some(piece) = reader.read(most).unwrap().filter(|piece| !piece.is_empty()) {
            assert!(piece.len() <= most);
            all.extend_from_slice(&piece);
        }
        all
    };
    let records = [&first.to_le_bytes()[..], &[9, 0, 0, 0], b"data: x\n\n", &(first + 1).to_le_bytes(), &[0; 4]];
    for most in [1, 2, 3, 7, 100] {
        assert_eq!(read(Framing::Bytes, most), b"data: x\n\n");
        let events = format!("id: {first}\ndata: x\n\nid: {}\n", first + 1);
        assert_eq!(read(Framing::Events, most), events.into_bytes());
        assert_eq!(read(Framing::Records, most), records.concat());
    }
}

#[test]
fn the_last_message_of_a_key_is_what_later_readers_get() {
    let channel = Channel::default();
    let mut early = channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap();
    for (message, key) in [("a", Some("x")), ("b", None), ("c", Some("y")), ("d", Some("x")), ("e", Some(""))] {
        publish(&channel, message, key);
    }
    let mut late = channel.subscribe("t", Start::Oldest, Framing::Bytes).unwrap();
    assert_eq!((text(&mut early), text(&mut late)), ("abcde".to_owned(), "bcde".to_owned()));
}

/// Goal: what was replaced gives way first, and costs nobody his place.
#[test]
fn a_topic_of_keys_keeps_the_last_of_each() {
    let channel = Channel::default();
    let mut slow = channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap();
    publish(&channel, "rare", Some("rare"));
    let large = "x".repeat(CHANNEL_MESSAGE_BYTES_MAX);
    for _ in 0..100 {
        publish(&channel, &large, Some("often"));
    }
    let mut late = channel.subscribe("t", Start::Oldest, Framing::Bytes).unwrap();
    assert_eq!(text(&mut late), format!("rare{large}"));
    let all = text(&mut slow);
    assert!(all.starts_with("rarex") && all.len() < 17 * large.len(), "{} bytes", all.len());
    // Who is in the middle of one that gives way lacks its rest.
    publish(&channel, &large, Some("often"));
    assert_eq!(slow.read(1).unwrap().unwrap().len(), 1);
    for _ in 0..20 {
        publish(&channel, &large, Some("often"));
    }
    assert_eq!(slow.read(1), Err(Behind));
}

#[test]
fn one_that_falls_behind_is_cut_alone() {
    let channel = Channel::default();
    let [mut slow, mut begun, mut quick] =
        [(); 3].map(|()| channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap());
    let large = "x".repeat(CHANNEL_MESSAGE_BYTES_MAX);
    let fit = CHANNEL_TOPIC_BYTES_MAX / (CHANNEL_MESSAGE_BYTES_MAX + CHANNEL_MESSAGE_COST);
    publish(&channel, &large, None);
    assert_eq!(begun.read(10).unwrap().unwrap().len(), 10);
    for _ in 0..fit {
        publish(&channel, &large, None);
        assert!(!text(&mut quick).is_empty());
    }
    for reader in [&mut slow, &mut begun] {
        assert_eq!(reader.read(10), Err(Behind));
        assert_eq!(reader.read(10), Ok(None), "and then the end");
        assert!(reader.is_ready());
    }
    publish(&channel, "y", None);
    assert_eq!(text(&mut quick), "y");
    assert_eq!(channel.subscribe("t", Start::Oldest, Framing::Bytes).map(|mut late| text(&mut late).len()), {
        Ok(fit * large.len() + 1)
    });
}

/// Goal: readers that never read cost the publisher nothing.
#[test]
fn nobody_holds_up_a_publisher() {
    let channel = Channel::default();
    let readers: Vec<Reader> =
        (0..1000).map(|_| channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap()).collect();
    let large = "x".repeat(CHANNEL_MESSAGE_BYTES_MAX);
    for _ in 0..1000 {
        publish(&channel, &large, None);
    }
    let state = channel.lock();
    let ring = state.topics.values().next().unwrap().lock();
    assert!(ring.bytes <= CHANNEL_TOPIC_BYTES_MAX && readers.iter().all(|reader| reader.is_behind(&ring)));
}

#[test]
fn topics_are_bounded_and_unused_ones_give_way() {
    let channel = Channel::default();
    let open = |number: usize| channel.publish(&number.to_string(), b"x", None);
    assert!((0..CHANNEL_TOPICS_MAX).all(|number| open(number).is_ok()));
    for number in CHANNEL_TOPICS_MAX..10_000 {
        assert_eq!(open(number), Err(ChannelError::Quota));
        let refused = channel.subscribe(&number.to_string(), Start::Newest, Framing::Bytes);
        assert_eq!(refused.unwrap_err(), ChannelError::Quota);
    }
    channel.close("0");
    drop(channel.subscribe("idle", Start::Newest, Framing::Bytes).unwrap());
    let waiting = open(CHANNEL_TOPICS_MAX);
    assert!(waiting.is_ok(), "nobody has the idle one");
    assert_eq!(open(CHANNEL_TOPICS_MAX + 1), Err(ChannelError::Quota));
    for topic in ["", "a b", "ä", &"x".repeat(65)] {
        assert_eq!(channel.publish(topic, b"x", None), Err(ChannelError::InvalidTopic));
        let refused = channel.subscribe(topic, Start::Newest, Framing::Bytes);
        assert_eq!(refused.unwrap_err(), ChannelError::InvalidTopic);
        channel.close(topic);
    }
}

#[test]
fn sizes_are_bounded() {
    let channel = Channel::default();
    let (message, key) = ([0; CHANNEL_MESSAGE_BYTES_MAX + 1], [0; CHANNEL_KEY_BYTES_MAX + 1]);
    assert_eq!(channel.publish("t", &message, None), Err(ChannelError::TooLarge));
    assert_eq!(channel.publish("t", b"", Some(&key)), Err(ChannelError::TooLarge));
    assert!(channel.publish("t", &message[1..], Some(&key[1..])).is_ok());
    let mut reader = channel.subscribe("t", Start::Oldest, Framing::Bytes).unwrap();
    assert_eq!(reader.read(usize::MAX).unwrap().unwrap().len(), CHANNEL_READ_BYTES_MAX);
    // Messages without a byte count, too.
    for number in 0..CHANNEL_TOPIC_BYTES_MAX / CHANNEL_MESSAGE_COST + 10 {
        channel.publish("u", b"", Some(&number.to_le_bytes())).unwrap();
    }
    let state = channel.lock();
    let ring = state.topics.values().last().unwrap().lock();
    let fit = CHANNEL_TOPIC_BYTES_MAX / (CHANNEL_MESSAGE_COST + 8);
    assert_eq!((ring.kept.len(), ring.keys.len(), ring.replaced.len()), (fit, fit, 0));
}

#[test]
fn readers_are_bounded_and_give_their_places_back() {
    let channel = Channel::default();
    let subscribe = || channel.subscribe("t", Start::Newest, Framing::Bytes);
    let mut readers: Vec<Reader> = (0..CHANNEL_SUBSCRIBERS_MAX).map(|_| subscribe().unwrap()).collect();
    assert_eq!(subscribe().unwrap_err(), ChannelError::Quota);
    readers.pop();
    assert!(subscribe().is_ok());
}

/// Goal: what all modules of a container publish is bounded together. Method: a container with room for two messages.
#[test]
fn messages_take_their_share_of_the_container() {
    let each = cost(1000, 0);
    let mut channels = Channels::new(2 * each as u64 * CHANNELS_MEMORY_SHARE);
    let [one, other] = ["example.org/a", "example.org/b"].map(|name| channels.open(&name.parse().unwrap()));
    let message = [7; 1000];
    one.publish("t", &message, None).unwrap();
    other.publish("t", &message, None).unwrap();
    assert_eq!(one.publish("u", &message, None), Err(ChannelError::Quota));
    // An older one of the topic gives way.
    let mut late = one.subscribe("t", Start::Newest, Framing::Bytes).unwrap();
    one.publish("t", b"new", None).unwrap();
    assert_eq!(text(&mut late), "new");
    assert_eq!(one.publish("t", &[7; 2001], None), Err(ChannelError::Quota));
    assert_eq!(one.subscribe("t", Start::Oldest, Framing::Bytes).map(|mut late| text(&mut late)), Ok("new".to_owned()));
    drop(other);
    assert!(one.publish("u", &message, None).is_ok());
}

#[test]
fn readers_of_a_closed_topic_get_the_rest_of_it() {
    let channel = Channel::default();
    let mut reader = channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap();
    publish(&channel, "last", None);
    channel.close("t");
    publish(&channel, "another", None);
    assert_eq!(reader.read(2), Ok(Some("la".into())));
    assert!(reader.is_ready());
    assert_eq!((reader.read(9), reader.read(9)), (Ok(Some("st".into())), Ok(None)));
    let mut late = channel.subscribe("t", Start::Oldest, Framing::Bytes).unwrap();
    assert_eq!(text(&mut late), "another");
    channel.close("other");
}

/// Goal: readers that do not read on hold no memory of closed topics that others want.
#[test]
fn what_is_left_of_closed_topics_gives_way() {
    let each = cost(1000, 0);
    let channel = Channel::new(Budget::new(2 * each));
    let mut slow = channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap();
    for _ in 0..100 {
        channel.publish("t", &[7; 1000], None).unwrap();
        channel.publish("u", &[7; 1000], None).unwrap();
        channel.close("t");
    }
    assert_eq!(slow.read(9), Err(Behind));
    assert!(channel.lock().closed.len() <= 1);
}

#[test]
fn versions_share_a_channel_and_a_removal_ends_it() {
    let mut channels = Channels::new(1 << 30);
    let name = "example.org/a".parse().unwrap();
    let before = channels.open(&name);
    publish(&before, "kept", None);
    let after = channels.open(&name);
    drop(before);
    let subscribe = |channel: &Channel| channel.subscribe("t", Start::Oldest, Framing::Bytes).unwrap();
    let mut reader = subscribe(&after);
    assert_eq!(text(&mut reader), "kept");
    drop(after);
    assert_eq!(text(&mut subscribe(&channels.open(&name))), "");
    assert_eq!(channels.channels.len(), 1);
}

#[test]
fn a_reader_waits_until_there_is_something() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let channel = Arc::new(Channel::default());
    let reader = channel.subscribe("t", Start::Newest, Framing::Bytes).unwrap();
    let publisher = Arc::clone(&channel);
    runtime.block_on(async move {
        let mut waiting = std::pin::pin!(reader.ready());
        let early = tokio::time::timeout(Duration::from_millis(5), waiting.as_mut()).await;
        assert!(early.is_err(), "there is no message yet");
        let thread = std::thread::spawn(move || publisher.publish("t", b"x", None));
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it is woken");
        thread.join().unwrap().unwrap();
        let closing = channel.subscribe("u", Start::Newest, Framing::Bytes).unwrap();
        let thread = std::thread::spawn(move || channel.close("u"));
        tokio::time::timeout(Duration::from_secs(60), closing.ready()).await.expect("the end wakes it");
        thread.join().unwrap();
    });
}

fn publish(channel: &Channel, message: &str, key: Option<&str>) -> u64 {
    channel.publish("t", message.as_bytes(), key.map(str::as_bytes)).unwrap()
}

/// Returns all that there is to read.
fn text(reader: &mut Reader) -> String {
    let mut all = Vec::new();
    while let Some(piece) = reader.read(usize::MAX).unwrap().filter(|piece| !piece.is_empty()) {
        all.extend_from_slice(&piece);
    }
    String::from_utf8(all).unwrap()
}
