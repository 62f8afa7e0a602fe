//! A typed service: one trait, a server on the poll API that reads messages in place, and a client
//! that uses futures.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dunlin::service::{Context, Failure, Fixed, Postcard};
use dunlin::{Auto, Cx, Local, Nexus, Rpc, Tasks, service};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A message of a fixed layout: its bytes in memory are the message.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
struct Transfer {
    from: U64,
    to: U64,
    amount: U64,
}

/// A method's own error.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
struct Missing {
    amount: U64,
}

#[service(codec = Fixed)]
trait Bank {
    /// Moves an amount; returns the rest.
    #[method(1)]
    fn transfer(transfer: Transfer) -> Result<U64, Missing>;

    /// The users that have more than this amount.
    #[method(2, codec = Postcard)]
    fn richer(amount: u64) -> Vec<u64>;

    /// A call without an answer.
    #[notify(3)]
    fn open(account: U64);
}

#[derive(Default)]
struct Accounts(BTreeMap<u64, u64>);

impl BankPoll for Accounts {
    fn transfer(&mut self, it: &Transfer, _: &mut Cx<'_>, _: Context<'_>) -> Result<U64, Missing> {
        let from = self.0.entry(it.from.get()).or_insert(100);
        let Some(left) = from.checked_sub(it.amount.get()) else {
            let amount = U64::new(it.amount.get() - *from);
            return Err(Missing { amount });
        };
        *from = left;
        *self.0.entry(it.to.get()).or_insert(100) += it.amount.get();
        Ok(U64::new(left))
    }

    fn richer(&mut self, amount: u64, _: &mut Cx<'_>, _: Context<'_>) -> Vec<u64> {
        let richer = self.0.iter().filter(|(_, owned)| **owned > amount);
        richer.map(|(account, _)| *account).collect()
    }

    fn open(&mut self, account: &U64, _: &mut Cx<'_>, _: Context<'_>) {
        self.0.entry(account.get()).or_insert(100);
    }
}

fn main() -> anyhow::Result<()> {
    let (bank, customer) = (Nexus::bind("127.0.0.1:0")?, Nexus::bind("127.0.0.1:0")?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&bank, &stop));
        let used = use_bank(&customer, bank.address());
        stop.store(true, Ordering::Relaxed);
        server.join().expect("the server does not panic")?;
        used
    })
}

fn serve(nexus: &Nexus, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Accounts> = nexus.endpoint(Accounts::default())?;
    BankPoll::register(&mut rpc);
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
    Ok(())
}

fn use_bank(nexus: &Nexus, address: SocketAddr) -> anyhow::Result<()> {
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default())?);
    let session = local.connect(address)?;
    local.block_on(|cx| async move {
        let bank = BankClient::new(cx, session);
        bank.open(&U64::new(7))?;
        let (from, to, amount) = (U64::new(1), U64::new(2), U64::new(60));
        let transfer = Transfer { from, to, amount };
        let left = bank
            .transfer(&transfer)
            .deadline(Duration::from_secs(5))
            .await;
        println!(
            "left: {}",
            left.map_err(|error| anyhow::anyhow!("{error:?}"))?
        );
        match bank.transfer(&transfer).await {
            Err(Failure::Method(missing)) => println!("missing: {}", missing.amount),
            other => anyhow::bail!("{other:?}"),
        }
        println!("richer than 100: {:?}", bank.richer(&100).await?);
        Ok(())
    })
}
