use hmac::{Hmac, KeyInit, Mac};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use sha2::Sha256;
use static_assertions::assert_not_impl_any;

use super::{Capability, Claims, TrustedKey, header_segment, verify, verify_for};
use crate::canon::{Value, b64url, unb64url};
use crate::guard::jws;
use crate::guard::{Code, IssueGrant, SpendGrant, digest_of};
use crate::model::{Millis, Target};

// guard 1.5: none of these can be copied, stored or read back.
assert_not_impl_any!(Capability: Clone, serde::Serialize, serde::de::DeserializeOwned, std::fmt::Display);
assert_not_impl_any!(IssueGrant: Clone, serde::Serialize, serde::de::DeserializeOwned);
assert_not_impl_any!(SpendGrant: Clone, serde::Serialize, serde::de::DeserializeOwned);
assert_not_impl_any!(crate::guard::Approved<'static>: Clone, serde::Serialize, serde::de::DeserializeOwned);

fn key() -> SigningKey {
    SigningKey::from_slice(&[5; 32]).unwrap()
}

fn keys() -> Vec<TrustedKey> {
    vec![TrustedKey::new(*key().verifying_key())]
}

fn change() -> std::collections::BTreeMap<String, Value> {
    [("replicas".to_owned(), Value::Int(6))].into()
}

fn target() -> Target {
    Target {
        namespace: "acme".to_owned(),
        name: "checkout".to_owned(),
    }
}

fn claims() -> Claims {
    Claims {
        jti: b64url(&[1; 16]),
        aid: "act_1".to_owned(),
        act: "scale".to_owned(),
        tgt: target(),
        dig: digest_of("scale", &target(), &change()),
        iat: 1_780_000_000,
        exp: 1_780_000_600,
        epoch: 1,
        inc: 1,
        pol: b64url(&[2; 32]),
        chk: 12,
        jkt: b64url(&[3; 32]),
    }
}

fn token_of(payload: &str) -> String {
    jws::sign(&header_segment(key().verifying_key()), payload, &key())
}

fn token() -> String {
    token_of(&claims().to_jcs())
}

/// guard 5.2, 5.3
#[test]
fn a_minted_capability_verifies_and_gives_its_claims_back() {
    assert_eq!(verify(&token(), &keys()), Ok(claims()));
    let header = token().split('.').next().unwrap().to_owned();
    let header = String::from_utf8(unb64url(&header).unwrap()).unwrap();
    let kid = jws::thumbprint(key().verifying_key());
    assert_eq!(
        header,
        format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"sentinel-cap+jwt"}}"#)
    );
    let read = TrustedKey::from_jwks(jws::jwks(&[*key().verifying_key()]).as_bytes()).unwrap();
    assert!(verify(&token(), &read).is_ok());
}

fn with_header(header: &str) -> String {
    let signed = format!(
        "{}.{}",
        b64url(header.as_bytes()),
        b64url(claims().to_jcs().as_bytes())
    );
    let signature: Signature = key().sign(signed.as_bytes());
    format!("{signed}.{}", b64url(&signature.normalize_s().to_bytes()))
}

/// guard 5.3.2, 10 T1
#[test]
fn a_token_that_says_alg_none_is_refused() {
    let header = b64url(br#"{"alg":"none"}"#);
    let payload = b64url(claims().to_jcs().as_bytes());
    assert_eq!(verify(&format!("{header}.{payload}."), &keys()), Err(2));
    assert_eq!(verify(&with_header(r#"{"alg":"none"}"#), &keys()), Err(2));
}

/// guard 5.3.2, 10 T2
#[test]
fn an_hmac_keyed_with_the_public_key_is_refused() {
    let header = b64url(br#"{"alg":"HS256"}"#);
    let signed = format!("{header}.{}", b64url(claims().to_jcs().as_bytes()));
    let public = key().verifying_key().to_sec1_point(false);
    let mut mac = Hmac::<Sha256>::new_from_slice(public.as_bytes()).unwrap();
    mac.update(signed.as_bytes());
    let token = format!("{signed}.{}", b64url(&mac.finalize().into_bytes()));
    assert_eq!(verify(&token, &keys()), Err(2));
}

/// guard 5.3.2, 10 T3, T4: the header is never parsed, so nothing it names is opened or trusted.
#[test]
fn no_key_and_no_algorithm_is_taken_from_the_token() {
    let jwk = jws::public_jwk(key().verifying_key()).to_jcs();
    let kid = jws::thumbprint(key().verifying_key());
    for header in [
        format!(r#"{{"alg":"ES256","jwk":{jwk},"typ":"sentinel-cap+jwt"}}"#),
        r#"{"alg":"ES256","jku":"http://127.0.0.1/k","typ":"sentinel-cap+jwt"}"#.to_owned(),
        r#"{"alg":"ES256","typ":"sentinel-cap+jwt","x5c":["AA=="]}"#.to_owned(),
        r#"{"alg":"ES256","kid":"unknown","typ":"sentinel-cap+jwt"}"#.to_owned(),
        r#"{"alg":"ES256","kid":"../../etc/passwd","typ":"sentinel-cap+jwt"}"#.to_owned(),
        format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"JWT"}}"#),
        format!(r#"{{"alg": "ES256","kid":"{kid}","typ":"sentinel-cap+jwt"}}"#),
    ] {
        assert_eq!(verify(&with_header(&header), &keys()), Err(2), "{header}");
    }
}

/// guard 5.3.3, 10 T5
#[test]
fn signatures_in_any_other_form_are_refused() {
    let token = token();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let raw = unb64url(signature).unwrap();
    let good = Signature::from_slice(&raw).unwrap();
    let high = Signature::from_scalars(good.r(), -*good.s()).unwrap();
    assert_ne!(high, good);
    let order = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc,
        0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let big_r = [&order[..], &raw[32..]].concat();
    let der = good.to_der();
    for bad in [
        &high.to_bytes()[..],
        &[0; 64],
        &big_r,
        der.as_bytes(),
        &raw[..63],
        &[&raw[..], &[0]].concat(),
        &[],
    ] {
        let forged = format!("{signed}.{}", b64url(bad));
        assert_eq!(verify(&forged, &keys()), Err(3), "{} bytes", bad.len());
    }
}

/// guard 5.3.1
#[test]
fn a_token_in_another_spelling_is_refused() {
    let good = token();
    let long = format!("{good}{}", "A".repeat(2048));
    for bad in [
        format!("{good}="),
        format!("{good}."),
        format!(" {good}"),
        good.replace('.', ""),
        good.replacen('.', "..", 1),
        long,
        String::new(),
    ] {
        assert_eq!(verify(&bad, &keys()), Err(1), "{bad}");
    }
}

/// guard 5.3.4, 10 T6
#[test]
fn claims_that_are_not_exactly_those_of_a_capability_are_refused() {
    let good = claims().to_jcs();
    for (from, to) in [
        ("\"sentinel-guard\"", "\"https://idp.plant-7.example\""),
        ("\"sentinel-action\"", "\"sentinel-console\""),
        ("\"exp\":1780000600", "\"exp\":1780000601"),
        ("\"exp\":1780000600", "\"exp\":1780000000"),
        ("\"nbf\":1780000000", "\"nbf\":1780000001"),
        ("\"chk\":12", "\"chk\":\"12\""),
        ("\"chk\":12", "\"chk\":12.0"),
        ("\"chk\":12,", ""),
        ("\"chk\":12", "\"chk\":12,\"extra\":1"),
        ("\"act\":", " \"act\":"),
        ("\"inc\":1", "\"inc\":1,\"inc\":1"),
        ("\"namespace\":\"acme\"", "\"namespace\":\"acme\",\"x\":1"),
    ] {
        assert!(good.contains(from), "{from}");
        let bad = good.replacen(from, to, 1);
        assert_eq!(verify(&token_of(&bad), &keys()), Err(4), "{to}");
    }
}

/// guard 7.2: a capability verifies for exactly one parameter set.
#[test]
fn a_worker_takes_a_capability_for_its_own_arguments_and_key_only() {
    let now = Millis(1_780_000_000_000);
    let (target, change) = (target(), change());
    let own = ("scale", &target, &change);
    let jkt = b64url(&[3; 32]);
    let check =
        |now, own, jkt: &str| verify_for(&token(), &keys(), now, own, jkt).map_err(|p| p.code);
    assert!(check(now, own, &jkt).is_ok());
    assert_eq!(check(now.plus(600_000), own, &jkt), Err(Code::Expired));
    assert_eq!(check(now.plus(-1), own, &jkt), Err(Code::Expired));
    assert_eq!(
        check(now, own, &b64url(&[4; 32])),
        Err(Code::HolderMismatch)
    );
    let more = [("replicas".to_owned(), Value::Int(7))].into();
    assert_eq!(
        check(now, ("scale", &target, &more), &jkt),
        Err(Code::ParamsMismatch)
    );
    assert_eq!(
        check(now, ("stop", &target, &change), &jkt),
        Err(Code::ParamsMismatch)
    );
}

/// guard 1.6
#[test]
fn a_capability_never_shows_its_bytes() {
    let capability = Capability {
        token: zeroize::Zeroizing::new(token()),
        exp: Millis(0),
    };
    assert_eq!(format!("{capability:?}"), "Capability(..)");
}
