//! E-mail through the mail server of the configuration. Without one nothing is sent, and whoever wants to is told so.

use std::time::Duration;

use anyhow::Context;
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
};
use secrecy::ExposeSecret;

use crate::{app::App, config};

/// How long a mail server may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Longest subject; a longer one is cut.
const SUBJECT: usize = 200;

/// A connection to the mail server, opened when there is something to send.
#[derive(Debug, Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// One message.
#[derive(Debug)]
pub struct Letter<'a> {
    pub to: &'a [String],
    pub cc: &'a [String],
    pub bcc: &'a [String],
    pub subject: String,
    pub text: String,
    /// Whether the text is HTML.
    pub html: bool,
}

/// Why a message was not taken.
#[derive(Debug)]
pub struct MailError {
    pub message: String,
    /// Another attempt may go better.
    pub is_transient: bool,
}

impl Mailer {
    /// None where no mail server is configured.
    ///
    /// # Errors
    /// An address that cannot be read.
    pub fn new(config: &config::Mail) -> anyhow::Result<Option<Self>> {
        let url = config.url.expose_secret();
        if url.is_empty() {
            return Ok(None);
        }
        let from = config.from.parse().with_context(|| {
            format!(
                "mail.from is no address such as Loupe <loupe@example.com>: {}",
                config.from
            )
        })?;
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
            .context("mail.url is no address such as smtps://user:password@mail.example.com")?
            .timeout(Some(TIMEOUT))
            .build();
        Ok(Some(Self { transport, from }))
    }

    /// Hands the message to the mail server.
    ///
    /// # Errors
    /// An address that is none, or the server's refusal.
    pub async fn send(&self, letter: Letter<'_>) -> Result<(), MailError> {
        let message = self.message(letter)?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) => Err(MailError {
                is_transient: !error.is_permanent(),
                message: format!("the mail server did not take the message: {error}"),
            }),
        }
    }

    fn message(&self, letter: Letter<'_>) -> Result<Message, MailError> {
        let fault = |message: String| MailError {
            message,
            is_transient: false,
        };
        let address = |text: &String| {
            text.parse::<Mailbox>()
                .map_err(|error| fault(format!("{text} is no e-mail address: {error}")))
        };
        // A line break would begin another header.
        let subject = letter.subject.replace(['\r', '\n'], " ");
        let subject: String = subject.chars().take(SUBJECT).collect();
        let mut message = Message::builder().from(self.from.clone()).subject(subject);
        for to in letter.to {
            message = message.to(address(to)?);
        }
        for cc in letter.cc {
            message = message.cc(address(cc)?);
        }
        for bcc in letter.bcc {
            message = message.bcc(address(bcc)?);
        }
        let kind = match letter.html {
            true => ContentType::TEXT_HTML,
            false => ContentType::TEXT_PLAIN,
        };
        message
            .header(kind)
            .body(letter.text)
            .map_err(|error| fault(format!("this is no message: {error}")))
    }
}

/// Seconds before each attempt of [`send`].
const PAUSES: [u64; 5] = [0, 2, 10, 60, 300];

/// Sends a text later: how long that takes tells nobody anything. Without a mail server it is shown in the log, which is
/// enough to try things.
pub fn send(app: &App, to: &str, subject: &str, text: String) {
    let Some(mailer) = app.mailer().cloned() else {
        tracing::info!(
            to,
            subject,
            "no mail server is configured; the mail says:\n{text}"
        );
        return;
    };
    let (sender, to, subject) = (app.clone(), [to.to_owned()], subject.to_owned());
    app.spawn(async move {
        for pause in PAUSES {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(pause)) => {}
                () = sender.leaving.cancelled() => return,
            }
            let letter = Letter {
                to: &to,
                cc: &[],
                bcc: &[],
                subject: subject.clone(),
                text: text.clone(),
                html: false,
            };
            match mailer.send(letter).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(error = error.message, "a mail could not be sent"),
            }
        }
    });
}
