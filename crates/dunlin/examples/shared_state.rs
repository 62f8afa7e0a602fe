//! A server with four threads, and an endpoint on each: they share one map of accounts, and each
//! has a state of its own, which needs no lock. Calls name their endpoint here, so that the
//! output is always the same; a channel spreads other calls over the endpoints by itself.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dunlin::service::{Context, Postcard};
use dunlin::{Channel, Server, service};

#[service(codec = Postcard)]
trait Bank {
    /// Adds an amount to an account (account, amount), and returns the new balance.
    #[method(1)]
    fn pay(payment: (u64, u64)) -> u64;

    /// The thread that has this request, and the number of payments that it has handled.
    #[method(2)]
    fn here(nothing: ()) -> (usize, u64);
}

/// The state that all threads share.
type Accounts = Arc<Mutex<BTreeMap<u64, u64>>>;

/// The state of one thread.
struct Desk {
    thread: usize,
    accounts: Accounts,
    /// Handlers of one thread run one after another, so a cell is enough.
    payments: Cell<u64>,
}

impl Bank for Desk {
    async fn pay(&self, (account, amount): (u64, u64), _: Context<'_>) -> u64 {
        self.payments.set(self.payments.get() + 1);
        // The guard is dropped before the next `await`.
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let balance = accounts.entry(account).or_default();
        *balance += amount;
        *balance
    }

    async fn here(&self, (): (), _: Context<'_>) -> (usize, u64) {
        (self.thread, self.payments.get())
    }
}

fn main() -> anyhow::Result<()> {
    let accounts = Accounts::default();
    let shared = Arc::clone(&accounts);
    let server = Server::builder()
        .threads(4)
        .service(move |thread| {
            BankServer(Desk {
                thread: thread.index(),
                accounts: Arc::clone(&shared),
                payments: Cell::new(0),
            })
        })
        .start("127.0.0.1:0")?;
    let address = server.address().to_string();
    let channel = Channel::builder().address(address).open()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let bank = BankClient::over(channel.clone());
        let pays: Vec<_> = (0..4000_u16)
            .map(|number| {
                let pay = bank.pay(&(u64::from(number % 10), 1));
                tokio::spawn(pay.endpoint(number % 4))
            })
            .collect();
        for pay in pays {
            pay.await??;
        }
        for endpoint in 0..4 {
            let (thread, payments) = bank.here(&()).endpoint(endpoint).await?;
            println!("endpoint {endpoint} is thread {thread}, with {payments} payments");
        }
        anyhow::Ok(())
    })?;
    let accounts = accounts.lock().unwrap_or_else(PoisonError::into_inner);
    println!("the accounts have {:?}", accounts.values());
    Ok(())
}
