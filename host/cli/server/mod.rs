//! Commands that run or prepare a host on this machine.

pub mod compile;
pub mod config;
pub mod database;
pub mod init;
pub mod master_key;
pub mod serve;
