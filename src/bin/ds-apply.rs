//! `ds-apply`: will carry out what `ds-plan` says.

use std::process::ExitCode;

fn main() -> ExitCode {
    ds_plan::cli::ds_apply().into()
}
