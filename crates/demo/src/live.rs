//! A demonstration on a terminal.

use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::{mpsc, watch};

use crate::draw::draw;
use crate::error::Error;
use crate::journal::Journal;
use crate::plan::Plan;
use crate::stage::{Rest, Stage};

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

/// Draws a demonstration on the terminal that stdin and stdout are, until somebody types q, the duration
/// is over or it is told to stop: then what it was told. The jobs are given back, and so is the screen.
///
/// # Errors
/// The store cannot be opened or used for this, the jobs cannot be run, or the terminal cannot be drawn
/// on.
pub async fn show<S>(
    plan: Plan,
    duration: Option<Duration>,
    stop: impl Future<Output = S>,
) -> Result<Option<S>, Error> {
    let plan = plan.checked()?;
    let mut terminal = ratatui::try_init()?;
    let outcome = draw_until(&mut terminal, plan, duration, stop).await;
    ratatui::restore();
    outcome
}

async fn draw_until<S>(
    terminal: &mut DefaultTerminal,
    plan: Plan,
    duration: Option<Duration>,
    stop: impl Future<Output = S>,
) -> Result<Option<S>, Error> {
    let (notes, mut noted) = mpsc::unbounded_channel();
    let (rest, rests) = watch::channel(Rest::default());
    let (wish, mut wishes) = mpsc::unbounded_channel();
    let keys = tokio::task::spawn_blocking(move || read_keys(&wish));
    let mut journal = Journal::new(plan.title(), plan.nodes, plan.jobs, boot_time());
    let (restart, restarts) = mpsc::channel(1);
    let mut stage = Stage::new(plan, notes, rests);
    let mut play = Box::pin(play(&mut stage, restarts));
    // The first one needs no key.
    let _ = restart.try_send(());
    let mut frames = tokio::time::interval(FRAME);
    let until = duration.map(|duration| boot_time() + duration);
    let mut stop = std::pin::pin!(stop);
    let outcome = loop {
        tokio::select! {
            biased;
            why = &mut stop => break Ok(Some(why)),
            wished = wishes.recv() => match wished {
                // One that is going on is not begun again.
                Some(Wish::Restart) => { let _ = restart.try_send(()); }
                Some(Wish::Quit) | None => break Ok(None),
            },
            Some((note, at)) = noted.recv() => {
                journal.note(note, at);
                rest.send_replace(journal.rest());
            }
            played = &mut play => break played.map(|()| None),
            _ = frames.tick() => {
                journal.now = boot_time();
                terminal.draw(|frame| draw(frame, &journal))?;
                if until.is_some_and(|until| journal.now >= until) {
                    break Ok(None);
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
async fn play(stage: &mut Stage, mut restarts: mpsc::Receiver<()>) -> Result<(), Error> {
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
