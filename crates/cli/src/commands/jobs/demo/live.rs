//! A demonstration on a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use frazil::coord::time::boot_time;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::draw::draw;
use super::headless::title;
use super::journal::Journal;
use super::stage::{Plan, Rest, Stage};
use crate::output::{Failure, Signal};

/// How often it is drawn.
const FRAME: Duration = Duration::from_millis(50);
/// How often a thread that waits for keys looks whether anybody wants them still.
const LOOK: Duration = Duration::from_millis(100);

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Quit,
    Restart,
}

pub(super) async fn run(plan: Plan, duration: Option<Duration>) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("there is no terminal to draw on: use --headless"));
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut terminal = ratatui::try_init()?;
    let outcome = tokio::select! {
        outcome = show(&mut terminal, plan, duration) => outcome,
        _ = terminate.recv() => Err(Failure::Interrupted(Signal::Terminate)),
    };
    ratatui::restore();
    outcome
}

async fn show(
    terminal: &mut DefaultTerminal,
    plan: Plan,
    duration: Option<Duration>,
) -> Result<(), Failure> {
    let (notes, mut noted) = mpsc::unbounded_channel();
    let (rest, rests) = watch::channel(Rest::default());
    let (wish, mut wishes) = mpsc::unbounded_channel();
    let keys = tokio::task::spawn_blocking(move || read_keys(&wish));
    let mut journal = Journal::new(title(&plan), plan.nodes, plan.jobs, boot_time());
    let (restart, restarts) = mpsc::channel(1);
    let mut stage = Stage::new(plan, notes, rests);
    let mut play = Box::pin(play(&mut stage, restarts));
    // The first one needs no key.
    let _ = restart.try_send(());
    let mut frames = tokio::time::interval(FRAME);
    let until = duration.map(|duration| boot_time() + duration);
    let outcome = loop {
        tokio::select! {
            biased;
            wished = wishes.recv() => match wished {
                // One that is going on is not begun again.
                Some(Wish::Restart) => { let _ = restart.try_send(()); }
                Some(Wish::Quit) | None => break Ok(()),
            },
            Some((note, at)) = noted.recv() => {
                journal.note(note, at);
                rest.send_replace(journal.rest());
            }
            played = &mut play => break played,
            _ = frames.tick() => {
                journal.now = boot_time();
                terminal.draw(|frame| draw(frame, &journal))?;
                if until.is_some_and(|until| journal.now >= until) {
                    break Ok(());
                }
            }
        }
    };
    drop((play, wishes));
    stage.close().await;
    // It has looked by now, or does so soon.
    let _ = keys.await;
    outcome
}

/// Restarts the nodes whenever somebody wants that.
async fn play(stage: &mut Stage, mut restarts: mpsc::Receiver<()>) -> Result<(), Failure> {
    stage.open().await?;
    while restarts.recv().await.is_some() {
        stage.roll().await?;
    }
    Ok(())
}

/// Reads keys until nobody wants to know.
fn read_keys(wishes: &mpsc::UnboundedSender<Wish>) {
    while !wishes.is_closed() {
        let wish =
            match event::poll(LOOK).and_then(|is_there| is_there.then(event::read).transpose()) {
                Ok(None) => None,
                Ok(Some(event)) => wish_of(&event),
                // Without a terminal nobody can end it.
                Err(_) => Some(Wish::Quit),
            };
        if wish.is_some_and(|wish| wishes.send(wish).is_err()) {
            return;
        }
    }
}

fn wish_of(event: &Event) -> Option<Wish> {
    let Event::Key(key) = event else { return None };
    if key.kind != KeyEventKind::Press {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Wish::Quit),
        KeyCode::Char('r') => Some(Wish::Restart),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_mean_what_the_screen_says() {
        let key = |code, modifiers| wish_of(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = KeyModifiers::NONE;
        assert_eq!(key(KeyCode::Char('q'), plain), Some(Wish::Quit));
        assert_eq!(key(KeyCode::Char('r'), plain), Some(Wish::Restart));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::Quit));
        assert_eq!(key(KeyCode::Char('c'), plain), None);
        assert_eq!(wish_of(&Event::FocusGained), None);
    }
}
