//! Public IP addresses.

use std::net::{IpAddr, Ipv4Addr};

/// Returns whether an address belongs to the public internet (IANA special-purpose registries).
pub(super) fn is_public(ip: IpAddr) -> bool {
    let ip = match ip {
        IpAddr::V4(ip) => return is_public_v4(ip),
        IpAddr::V6(ip) => ip,
    };
    // An address that embeds an IPv4 address is public if the latter is: NAT64, 6to4, mapped.
    let embedded = match ip.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
        | [0x20, 0x02, a, b, c, d, ..] => Some(Ipv4Addr::new(a, b, c, d)),
        _ => ip.to_ipv4_mapped(),
    };
    if let Some(ip) = embedded {
        return is_public_v4(ip);
    }
    let [first, second, ..] = ip.segments();
    let global_unicast = first & 0xe000 == 0x2000;
    let protocols_or_documentation =
        first == 0x2001 && (second < 0x200 || second == 0xdb8) || first == 0x3fff;
    global_unicast && !protocols_or_documentation
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let is_special = match ip.octets() {
        [0 | 127 | 224.., ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..20, ..] => true,
        [100, 64..128, ..] => true, // carrier-grade NAT
        _ => ip.is_private() || ip.is_link_local() || ip.is_documentation(),
    };
    !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for (ip, public) in [
            ("8.8.8.8", true),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("0.0.0.0", false),
            ("2606:4700::1", true),
            ("::1", false),
            ("::", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("64:ff9b::a9fe:a9fe", false),
            ("64:ff9b::808:808", true),
            ("64:ff9b:1::808:808", false), // local NAT64
            ("2002:7f00:1::", false),
            ("2001:db8::1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(ip.parse().unwrap()), public, "{ip}");
        }
    }
}
